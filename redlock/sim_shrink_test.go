package redlock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A simCut is a part of a world's history: it ends earlier, and some rounds of clients and some
// faults are left out. All others begin when they began in the whole history, or later.
type simCut struct {
	until time.Duration
	began map[string]time.Duration // of all rounds
	out   map[string]bool          // rounds and faults, by name
}

func (c *simCut) leavesOut(name string) bool { return c != nil && c.out[name] }

// awaits waits for the time of a round. It returns false if there is no such round any more.
func (c *simCut) awaits(s *simulation, round string) bool {
	if c == nil {
		return true
	}
	at, ever := c.began[round]
	return ever && s.pause(at-time.Since(s.began))
}

// A shrinker looks for the shortest part of a world's history in which two clients hold one lock.
type shrinker struct {
	t       *testing.T
	seed    uint64
	options simOptions
	whole   *simulation
	until   time.Duration
	runs    int
	left    []string // in the shortest history
}

// shrink returns the shortest history of a seed that has a conflict, or nil if the whole one has none.
func shrink(t *testing.T, seed uint64, o simOptions) (shortest *simulation, k *shrinker) {
	o.log, o.cut = nil, nil
	k = &shrinker{t: t, seed: seed, options: o}
	k.whole, _ = simulate(t, seed, o)
	found := k.whole.history.conflicts()
	if len(found) == 0 {
		return nil, k
	}
	first := slices.MinFunc(found, func(a, b conflict) int { return a.second.from.Compare(b.second.from) })
	k.until = first.second.from.Sub(k.whole.began) + time.Millisecond
	kept := k.all()
	if !k.fails(kept, nil) {
		t.Fatalf("seed %d: the history up to the conflict has none", seed)
	}
	for before := len(kept) + 1; len(kept) < before; {
		before = len(kept)
		kept = k.dropKinds(kept)
		kept = k.dropParts(kept)
	}
	k.left = kept
	return k.run(kept, &simLog{}), k
}

// all returns the names of all rounds and faults before the conflict, in their order.
func (k *shrinker) all() (names []string) {
	at := map[string]time.Duration{}
	for _, x := range k.whole.strikes {
		at[x.name] = x.at
	}
	for round, began := range k.whole.rounds {
		at[round] = began
	}
	for name, began := range at {
		if began < k.until {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if at[a] != at[b] {
			return int(at[a] - at[b])
		}
		return strings.Compare(a, b)
	})
	return names
}

// run runs the part of the history with these rounds and faults.
func (k *shrinker) run(kept []string, log *simLog) *simulation {
	k.runs++
	o := k.options
	o.log = log
	o.cut = &simCut{until: k.until, began: k.whole.rounds, out: map[string]bool{}}
	for _, x := range k.whole.strikes {
		o.cut.out[x.name] = true
	}
	for round := range k.whole.rounds {
		o.cut.out[round] = true
	}
	for _, name := range kept {
		delete(o.cut.out, name)
	}
	s, _ := simulate(k.t, k.seed, o)
	return s
}

// fails tells whether there is still a conflict without the given names.
func (k *shrinker) fails(kept []string, without []string) bool {
	kept = slices.DeleteFunc(slices.Clone(kept), func(name string) bool { return slices.Contains(without, name) })
	return len(k.run(kept, nil).history.conflicts()) > 0
}

// dropKinds leaves out all rounds of a client, or all faults of a kind, where it can.
func (k *shrinker) dropKinds(kept []string) []string {
	kind := func(name string) string { return name[:strings.LastIndex(name, " ")] }
	var kinds []string
	for _, name := range kept {
		if !slices.Contains(kinds, kind(name)) {
			kinds = append(kinds, kind(name))
		}
	}
	for _, one := range kinds {
		left := slices.DeleteFunc(slices.Clone(kept), func(name string) bool { return kind(name) == one })
		if k.fails(left, nil) {
			kept = left
		}
	}
	return kept
}

// dropParts leaves out ever smaller parts, down to single ones (Zeller's delta debugging).
func (k *shrinker) dropParts(kept []string) []string {
	for size := (len(kept) + 1) / 2; size > 0 && len(kept) > 0; {
		dropped := false
		for part := range slices.Chunk(slices.Clone(kept), size) {
			if k.fails(kept, part) {
				kept = slices.DeleteFunc(kept, func(name string) bool { return slices.Contains(part, name) })
				dropped = true
			}
		}
		if !dropped || size > len(kept) {
			size /= 2
		}
	}
	return kept
}

// story returns a shrunk history as text.
func (s *simulation) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d masters, %d proxies, %s\n", s.seed, s.plan.masters, s.plan.proxies, s.plan.keyNames())
	found := s.history.conflicts()
	if len(found) == 0 {
		return b.String() + "nothing is wrong\n"
	}
	c := found[0]
	for _, line := range s.log.about(c.first.key, s.began, c.second.from) {
		fmt.Fprintln(&b, line)
	}
	ms := func(t time.Time) string { return fmt.Sprintf("%.3f ms", t.Sub(s.began).Seconds()*1000) }
	fmt.Fprintf(&b, "So %s relies on %s from %s on, and %s from %s on.\n", c.first.client, c.first.key, ms(c.first.from), c.second.client, ms(c.second.from))
	return b.String()
}
