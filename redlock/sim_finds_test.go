package redlock

import (
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// loseLocks makes masters lose their locks and keep their markers. No rule can notice that,
// so no world of TestSimulation has it.
var loseLocks = simFault{name: "lose locks", forgets: true, begin: func(s *simulation, _ *rand.Rand) (func(), time.Duration) {
	for _, m := range s.masters {
		m.loseLocks()
	}
	s.log.note("all masters lose their locks")
	return nil, 0
}}

func (m *fakeMaster) loseLocks() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, keys := range m.dbs {
		maps.DeleteFunc(keys, func(key string, _ entry) bool { return key != marker.Key })
	}
}

// bareDEL makes a release delete whatever a master holds: the proxies' undos and releases then
// reach locks of others.
var bareDEL = simFault{name: "bare DEL", begin: func(s *simulation, _ *rand.Rand) (func(), time.Duration) {
	s.log.note("from now on masters release whatever lock there is")
	for _, m := range s.masters {
		m.mu.Lock()
		m.bareDEL = true
		m.mu.Unlock()
	}
	return nil, 0
}}

var simWrite = flag.Bool("sim.write", false, "write the shrunk histories in testdata")

// The simulation finds two holders where there are some. Otherwise it would prove nothing when it
// finds none. And it shrinks what it found to a history that a person can read.
func TestSimulationFindsTwoHolders(t *testing.T) {
	for _, f := range []simFault{loseLocks, bareDEL} {
		t.Run(f.name, func(t *testing.T) {
			for seed := uint64(1); seed <= 100; seed++ {
				s, k := shrink(t, seed, simOptions{faults: []simFault{f}})
				if s == nil {
					continue
				}
				t.Logf("after %d runs", k.runs)
				if most := 12; len(k.left) > most {
					t.Errorf("%d rounds and faults are left, and at most %d are expected: %q", len(k.left), most, k.left)
				}
				compareStory(t, "testdata/shrunk_"+strings.ReplaceAll(f.name, " ", "_")+".txt", s.story())
				return
			}
			t.Error("no two clients ever held a lock together")
		})
	}
}

// compareStory compares a shrunk history with its golden text. Whatever changes what is sent to masters
// and when may change it. Then read the new one, and write it.
func compareStory(t *testing.T, name, story string) {
	if *simWrite {
		if err := os.WriteFile(name, []byte(story), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if golden, err := os.ReadFile(name); err != nil || string(golden) != story {
		t.Errorf("%s differs (%v). If the code that changed may send something else, or at another time, write it with: go test ./redlock -run '^TestSimulationFindsTwoHolders$' -sim.write\nnow:\n%s", name, err, story)
	}
}
