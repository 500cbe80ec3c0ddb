//go:build !linux

package conn

// watchPeer does nothing: elsewhere Go's own keep-alive questions do, 15 s apart.
func watchPeer(uintptr) {}
