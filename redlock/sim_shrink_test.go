package redlock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	check "redlock-proxy/integration/history"
)

// A simCut is a part of a world's history: it ends earlier, and some rounds of clients and some
// faults are left out. All others begin when they began in the whole history, or later.
type simCut struct {
	until time.Duration
	ends  bool                     // nothing is looked at afterwards
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

// A shrinker looks for the shortest part of a world's history in which something is still wrong: two
// holders if there were any, and otherwise anything.
type shrinker struct {
	t        *testing.T
	seed     uint64
	options  simOptions
	whole    *simulation
	holders  bool
	until    time.Duration
	runs     int
	kept     []string    // the rounds and faults of the shortest history
	shortest *simulation // nil: nothing is wrong in the whole history
}

// shrink looks for the shortest history of a seed.
func shrink(t *testing.T, seed uint64, o simOptions) *shrinker {
	o.log, o.cut = nil, nil
	k := &shrinker{t: t, seed: seed, options: o}
	whole, wrong := simulate(t, seed, o)
	if len(wrong) == 0 {
		return k
	}
	k.whole, k.until = whole, whole.plan.duration
	if found := whole.history.conflicts(); len(found) > 0 {
		k.holders = true
		first := slices.MinFunc(found, func(a, b check.Conflict) int { return a.Second.From.Compare(b.Second.From) })
		k.until = first.Second.From.Sub(whole.began) + time.Millisecond
	}
	k.kept = k.all()
	if !k.fails(k.kept, nil) {
		t.Fatalf("seed %d: up to what is wrong the history has nothing wrong", seed)
	}
	for before := len(k.kept) + 1; len(k.kept) < before; {
		before = len(k.kept)
		k.kept = k.dropParts(k.dropKinds(k.kept))
	}
	k.shortest, _ = k.run(k.kept, &simLog{})
	return k
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
func (k *shrinker) run(kept []string, log *simLog) (s *simulation, wrong []string) {
	k.runs++
	o := k.options
	o.log = log
	o.cut = &simCut{until: k.until, ends: k.holders, began: k.whole.rounds, out: map[string]bool{}}
	for _, x := range k.whole.strikes {
		o.cut.out[x.name] = true
	}
	for round := range k.whole.rounds {
		o.cut.out[round] = true
	}
	for _, name := range kept {
		delete(o.cut.out, name)
	}
	return simulate(k.t, k.seed, o)
}

// fails tells whether something is still wrong without the given names.
func (k *shrinker) fails(kept []string, without []string) bool {
	kept = slices.DeleteFunc(slices.Clone(kept), func(name string) bool { return slices.Contains(without, name) })
	s, wrong := k.run(kept, nil)
	return len(wrong) > 0 && (!k.holders || len(s.history.conflicts()) > 0)
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
		for _, line := range s.log.about(s.history.subject, s.began, time.Now()) {
			fmt.Fprintln(&b, line)
		}
		return b.String() + strings.Join(s.history.failures, "\n") + "\n"
	}
	c := found[0]
	for _, line := range s.log.about(c.First.Key, s.began, c.Second.From) {
		fmt.Fprintln(&b, line)
	}
	ms := func(t time.Time) string { return fmt.Sprintf("%.3f ms", t.Sub(s.began).Seconds()*1000) }
	fmt.Fprintf(&b, "So %s relies on %s from %s on, and %s from %s on.\n", c.First.Client, c.First.Key, ms(c.First.From), c.Second.Client, ms(c.Second.From))
	return b.String()
}
