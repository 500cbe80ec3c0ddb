package command

import "redlock-proxy/proxy/wire"

// AsksForMaintenance recognises CLIENT MAINT_NOTIFICATIONS. The proxy never forwards it. An
// upstream that knows it could later tell the client to connect elsewhere, past the proxy.
// Then the client's locks would be on a single server again.
func AsksForMaintenance(args [][]byte) bool {
	return len(args) > 1 && wire.IsWord(args[0], "CLIENT") && wire.IsWord(args[1], "MAINT_NOTIFICATIONS")
}
