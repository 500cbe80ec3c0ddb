package session

import (
	"sync"

	"redlock-proxy/proxy/wire"
)

// Names are the channels and patterns to which a client subscribes and for which the masters are asked, too.
// The upstream confirms them to the client, or the handler does. Confirm is called in one step with the bytes
// that say so: the client's write lock is held. So whoever holds that lock, too, knows what the client knows.
// Any goroutine may call the other methods. A nil *Names has no names.
type Names struct {
	mu        sync.Mutex
	wanted    [2]map[string]bool // by family; true if confirmed to the client
	confirmed [3]int             // the number of those, by family
}

// NewNames makes Names of which none is wanted.
func NewNames() *Names { return &Names{wanted: [2]map[string]bool{{}, {}}} }

// Expect says that the client wants a name, which will be confirmed.
func (n *Names) Expect(of wire.Family, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.wanted[of][name]; !known {
		n.wanted[of][name] = false
	}
}

// Confirm notes a confirmation that the caller is writing to the client.
func (n *Names) Confirm(c wire.Confirmation) {
	if n == nil || c.Family == wire.FamilyShard {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	wanted := n.wanted[c.Family]
	if !c.Adds && len(c.Names) == 0 {
		clear(wanted)
		n.confirmed[c.Family] = 0
	}
	for _, name := range c.Names {
		confirmed, known := wanted[name]
		switch {
		case c.Refused && !confirmed, !c.Refused && !c.Adds:
			if delete(wanted, name); confirmed {
				n.confirmed[c.Family]--
			}
		case known && c.Adds && !confirmed:
			wanted[name] = true
			n.confirmed[c.Family]++
		}
	}
}

// Wanted tells whether the client wants a name, and whether that is confirmed.
func (n *Names) Wanted(of wire.Family, name string) (wanted, confirmed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	confirmed, wanted = n.wanted[of][name]
	return wanted, confirmed
}

// Any tells whether the client wants a name.
func (n *Names) Any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.wanted[wire.FamilyChannel])+len(n.wanted[wire.FamilyPattern]) > 0
}

// Confirmed returns the names whose subscriptions are confirmed to the client.
func (n *Names) Confirmed(of wire.Family) (names []string) {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, confirmed := range n.wanted[of] {
		if confirmed {
			names = append(names, name)
		}
	}
	return names
}

// Counts are the numbers of confirmed names by wire.Family.
func (n *Names) Counts() [3]int {
	if n == nil {
		return [3]int{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.confirmed
}
