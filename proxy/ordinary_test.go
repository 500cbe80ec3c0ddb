package proxy

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/wire"
)

// TestOrdinaryCommandsAreForwarded: what the router calls ordinary goes past
// everything that treats a command by its name, so nothing there may name it.
func TestOrdinaryCommandsAreForwarded(t *testing.T) {
	srv := benchServer(t, 1, "")
	defer func() { _ = srv.shutdown(t.Context()) }()
	s := newSession(srv, 1, newDrain())
	routes := srv.settings().Router
	ordinary := 0
	check := func(spec *command.Spec, names ...string) {
		args := bytesOf(names)
		for len(args) < max(spec.Arity, -spec.Arity) {
			args = append(args, []byte("x"))
		}
		to := routes.Route(0, args)
		if !to.Ordinary {
			return
		}
		ordinary++
		if cmd := (wire.Command{Args: args}); s.performHandshake(spec.Name, cmd, spec) || s.performJoined(spec.Name, cmd, to) || spec.Name == "watch" {
			t.Errorf("%s is answered by the proxy, but is called ordinary", spec.Name)
		}
	}
	for spec := range routes.Table.All() {
		check(spec, strings.Split(spec.Name, "|")...)
	}
	if ordinary < 100 {
		t.Errorf("only %d commands are ordinary", ordinary)
	}
}
