package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Hold is the time for which a client relies on a lock: from the answer until its validity ends or it begins to release the
// lock. If there is no such time, To is not after From.
type Hold struct {
	Key    string
	Client string
	How    string // it was taken
	From   time.Time
	To     time.Time
}

// A Conflict is two clients that relied on one lock at the same time.
type Conflict struct{ First, Second *Hold }

// In tells a conflict. stamp writes times.
func (c Conflict) In(stamp func(time.Time) string) string {
	tell := func(h *Hold) string {
		return fmt.Sprintf("%s %s from %s to %s", h.Client, h.How, stamp(h.From), stamp(h.To))
	}
	return fmt.Sprintf("two holders of %s: %s, and %s", c.First.Key, tell(c.First), tell(c.Second))
}

// Conflicts finds all conflicts in a history. It sorts the holds by key and time.
func Conflicts(holds []*Hold) (found []Conflict) {
	slices.SortStableFunc(holds, func(a, b *Hold) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), a.From.Compare(b.From))
	})
	for i, x := range holds {
		for _, y := range holds[i+1:] {
			if y.Key != x.Key || !y.From.Before(x.To) {
				break
			}
			if y.To.After(y.From) {
				found = append(found, Conflict{x, y})
			}
		}
	}
	return found
}
