//go:build !linux

package loop

// WatchPeer does nothing: elsewhere Go's own keep-alive questions do, 15 s apart.
func (s *Socket) WatchPeer() {}
