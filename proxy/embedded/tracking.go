package embedded

import (
	"slices"
	"strings"
	"sync"

	mini "github.com/alicebob/miniredis/v2/server"
)

// miniredis does not know which keys a client has read. So a client with CLIENT TRACKING is
// told that all keys may have changed, after every command of any client that may write. It
// reads more often than it need, and trusts no old value but that of a key that has expired.

// A tracker is a client that tracks keys.
type tracker struct {
	mu      sync.Mutex    // held while a command of the client runs, so that no push comes into its reply
	changed chan struct{} // closed when tracking ends
}

// tracking answers CLIENT TRACKING.
func (a *answers) tracking(peer *peer, args []string) {
	on := len(args) > 0 && strings.EqualFold(args[0], "ON")
	off := len(args) == 1 && strings.EqualFold(args[0], "OFF")
	switch {
	case !on && !off:
		peer.WriteError("ERR syntax error")
		return
	case slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, "REDIRECT") }):
		peer.WriteError("ERR the embedded server knows CLIENT TRACKING without REDIRECT only")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if client := a.known(peer); off {
		a.trackNoMore(client)
	} else if client.tracker == nil {
		client.tracker = &tracker{changed: make(chan struct{}, 1)}
		a.trackers++
		go client.tracker.push(peer)
	}
	peer.WriteOK()
}

// trackNoMore ends a client's tracking. The caller holds the mutex.
func (a *answers) trackNoMore(client *clientState) {
	if client.tracker != nil {
		close(client.tracker.changed)
		client.tracker = nil
		a.trackers--
	}
}

// push tells the client of changes until tracking ends. A client that speaks RESP2 is told
// nothing, as by Redis.
func (t *tracker) push(peer *peer) {
	for range t.changed {
		t.mu.Lock()
		if peer.Resp3 {
			peer.Block(func(w *mini.Writer) {
				w.WritePushLen(2)
				w.WriteBulk("invalidate")
				w.WriteNull()
			})
			peer.Flush()
		}
		t.mu.Unlock()
	}
}

// performTracked performs a command and then tells the trackers of it. It returns false if
// there are none, or if this is the command that it performs.
func (a *answers) performTracked(peer *peer, command string, args []string) bool {
	a.mu.Lock()
	if a.trackers == 0 || a.performing[peer] {
		a.mu.Unlock()
		return false
	}
	a.performing[peer] = true
	var own *tracker
	if client := a.clients[peer]; client != nil {
		own = client.tracker
	}
	a.mu.Unlock()
	if own != nil {
		own.mu.Lock()
	}
	a.server.Dispatch(peer, append([]string{command}, args...))
	if own != nil {
		own.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.performing, peer)
	if a.server.IsReadOnlyCommand(command) {
		return true
	}
	for _, client := range a.clients {
		if client.tracker != nil {
			select {
			case client.tracker.changed <- struct{}{}:
			default:
			}
		}
	}
	return true
}
