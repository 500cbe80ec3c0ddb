package session

import (
	"sync"

	"redlock-proxy/proxy/wire"
)

// Names are the channels and patterns for which the masters are asked for a client. The upstream confirms to
// the client that it subscribes, or the handler does. Confirm is called in one step with the bytes that say so: the
// client's write lock is held. So whoever holds that lock, too, knows what the client knows. Any goroutine
// may call the other methods. A nil *Names has no names.
type Names struct {
	mu        sync.Mutex
	asked     [2]map[string]bool // by family; true if confirmed to the client
	confirmed [3]int             // the number of those, by family
}

// NewNames makes Names without a name.
func NewNames() *Names { return &Names{asked: [2]map[string]bool{{}, {}}} }

// Add adds a name, which will be confirmed. It returns false if the masters are asked for it already.
func (n *Names) Add(of wire.Family, name string) (isNew bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, asked := n.asked[of][name]; asked {
		return false
	}
	n.asked[of][name] = false
	return true
}

// Confirm notes a confirmation that the caller is writing to the client.
func (n *Names) Confirm(c wire.Confirmation) {
	if n == nil || c.Family == wire.FamilyShard || c.Refused {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := n.asked[c.Family]
	if !c.Adds && len(c.Names) == 0 {
		for name := range asked {
			asked[name] = false
		}
		n.confirmed[c.Family] = 0
	}
	for _, name := range c.Names {
		switch before, known := asked[name]; {
		case !known || before == c.Adds:
		case c.Adds:
			n.confirmed[c.Family]++
			asked[name] = true
		default:
			n.confirmed[c.Family]--
			asked[name] = false
		}
	}
}

// Drop forgets the names that are not confirmed, and returns them. No confirmation may be under way.
func (n *Names) Drop(of wire.Family) (names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, confirmed := range n.asked[of] {
		if !confirmed {
			names = append(names, name)
			delete(n.asked[of], name)
		}
	}
	return names
}

// Has tells whether the masters are asked for a name, and Len for how many.
func (n *Names) Has(of wire.Family, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, asked := n.asked[of][name]
	return asked
}

func (n *Names) Len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.asked[wire.FamilyChannel]) + len(n.asked[wire.FamilyPattern])
}

// IsConfirmed tells whether the subscription of a name is confirmed to the client.
func (n *Names) IsConfirmed(of wire.Family, name []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[of][string(name)]
}

// Confirmed returns the names whose subscriptions are confirmed to the client.
func (n *Names) Confirmed(of wire.Family) (names []string) {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, confirmed := range n.asked[of] {
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

// Any tells whether a name is confirmed.
func (n *Names) Any() bool { return n.Counts() != [3]int{} }
