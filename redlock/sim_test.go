package redlock

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"redlock-proxy/integration/layer"
	"redlock-proxy/redlock/heal"
)

var (
	simSeed = flag.String("sim.seed", "", "run the simulation with these seeds only, comma separated, and shrink those that fail")
	simRuns = flag.Int("sim.runs", 0, "how many seeds the simulation runs with; 0: as many as the tier has time for")
)

// simulate runs one seed to its end in a bubble and returns what is wrong.
func simulate(t *testing.T, seed uint64, o simOptions) (s *simulation, wrong []string) {
	synctest.Test(t, func(*testing.T) {
		s = newSimulation(seed, o)
		s.run()
	})
	for _, c := range s.history.conflicts() {
		wrong = append(wrong, c.In(clock))
	}
	return s, append(wrong, s.history.failures...)
}

func simulatedWorlds() int {
	switch {
	case *simRuns > 0:
		return *simRuns
	case layer.Chosen() == layer.Long:
		return 10000
	case layer.Chosen() == layer.Servers:
		return 400
	}
	return 50
}

// simSeeds are the seeds to run: of as many worlds as the tier has time for, or of a part of them.
func simSeeds(t *testing.T, part int) []uint64 {
	var seeds []uint64
	if *simSeed == "" {
		first, worlds := layer.Seed(t), simulatedWorlds()
		if *simRuns == 0 {
			worlds /= part
		}
		for i := range worlds {
			seeds = append(seeds, first+uint64(i))
		}
		return seeds
	}
	for _, word := range strings.Split(*simSeed, ",") {
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// simulateAll runs worlds, as many at a time as there are processors, and calls done after each. A
// world that fails is shrunk.
func simulateAll(t *testing.T, seeds []uint64, o simOptions, done func(s *simulation)) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a world is small
	var mu sync.Mutex
	failed := 0
	t.Run("seeds", func(t *testing.T) {
		for _, seed := range seeds {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				s, wrong := simulate(t, seed, o)
				mu.Lock()
				defer mu.Unlock()
				done(s)
				if len(wrong) == 0 {
					return
				}
				t.Errorf("seed %d: %d wrong: %s", seed, len(wrong), strings.Join(wrong, "; "))
				if failed++; *simSeed != "" || failed == 1 {
					explain(t, seed, o)
				}
			})
		}
	})
	t.Logf("%d of %d seeds failed", failed, len(seeds))
}

// explain logs the shortest history of a seed in which something is wrong.
func explain(t *testing.T, seed uint64, o simOptions) {
	t.Logf("repeat it, exactly, with: go test ./redlock -run '^%s$' -sim.seed=%d", strings.Split(t.Name(), "/")[0], seed)
	if k := shrink(t, seed, o); k.shortest != nil {
		t.Logf("the shortest history, after %d runs:\n%s", k.runs, k.shortest.story())
	}
}

// No two clients ever rely on one lock at the same time, whatever goes wrong. A seed chooses the
// world and its faults, and the order of all that happens.
func TestSimulation(t *testing.T) {
	var all simCounts
	seeds := simSeeds(t, 1)
	simulateAll(t, seeds, simOptions{}, func(s *simulation) { all.add(s.history.counts) })
	t.Logf("%+v", all)
	// Usual for each world: 28 won, 450 without a quorum, 19 released, 6 extended, and 0.25 by GETSET.
	if runs := len(seeds); runs >= 100 && (all.won < 10*runs || all.noQuorum < runs || all.released < 5*runs || all.extended < 2*runs || all.gotBy < runs/30) {
		t.Errorf("too little happened: %+v", all)
	}
}

// The same worlds, with proxies that heal all the time and wait hardly at all between their
// looks.
func TestSimulationHeals(t *testing.T) {
	var did [heal.TooLarge + 1]int
	seeds := simSeeds(t, 4)
	simulateAll(t, seeds, simOptions{heals: true}, func(s *simulation) {
		for _, p := range s.proxies {
			for i, n := range p.heals.healed {
				did[i] += n
			}
		}
	})
	t.Logf("%d copies written in %d worlds", did[heal.Written], len(seeds))
	if len(seeds) >= 25 && did[heal.Written] < len(seeds)/4 { // usual: two in each world
		t.Errorf("too little was healed: %v", did)
	}
}

func (p simPlan) keyNames() string {
	var names []string
	for _, k := range p.keys {
		names = append(names, fmt.Sprintf("%s (%v, %v to %v)", k.name, k.style, k.ttl, k.longest))
	}
	return strings.Join(names, ", ")
}
