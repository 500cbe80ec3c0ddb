package redlock

import (
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
	"redlock-proxy/redlock/toymaster"
)

// loseLocks makes masters lose their locks and keep their markers. No rule can notice that,
// so no world of TestSimulation has it.
var loseLocks = simFault{name: "lose locks", forgets: true, begin: func(s *simulation, _ *rand.Rand) (func(), time.Duration) {
	for _, m := range s.masters {
		for _, keys := range m.DBs {
			maps.DeleteFunc(keys, func(key string, _ toymaster.Entry) bool { return key != marker.Key })
		}
	}
	s.log.note("all masters lose their locks")
	return nil, 0
}}

// bareDEL makes a release delete whatever a master holds: the proxies' undos and releases then
// reach locks of others.
var bareDEL = simFault{name: "bare DEL", begin: func(s *simulation, _ *rand.Rand) (func(), time.Duration) {
	s.log.note("from now on masters release whatever lock there is")
	for _, m := range s.masters {
		m.Edit = func(script string) string {
			if script == stream.ReleaseScript {
				return strings.Replace(script, "~= ARGV[1]", "== false", 1)
			}
			return withoutProbe(script)
		}
	}
	return nil, 0
}}

var simWrite = flag.Bool("sim.write", false, "write the shrunk histories in testdata")

// vanish takes a master away for ever.
var vanish = simFault{name: "vanish", begin: func(s *simulation, r *rand.Rand) (func(), time.Duration) {
	m := s.anyMaster(r)
	if !s.claim(m) {
		return nil, 0
	}
	s.log.note("%s ends for ever", m.Name)
	m.Kill()
	return nil, 0
}}

// lessThanAQuorum is won by one grant less than a quorum.
func lessThanAQuorum(t quorum.Tally) Verdict {
	if t.Granted >= quorum.Size(t.Masters)-1 {
		return Won
	}
	return t.Acquire()
}

// The simulation finds what is wrong where a rule is broken on purpose. Otherwise it would prove
// nothing when it finds nothing. And it shrinks what it found to a history that a person can read.
func TestSimulationFindsAndShrinks(t *testing.T) {
	for name, broken := range map[string]struct {
		seed   uint64 // from here on
		faults []simFault
		rule   func(quorum.Tally) Verdict // of acquires
		shows  string
	}{
		"masters lose locks":           {4, []simFault{loseLocks}, quorum.Tally.Acquire, "relies on lock:"},
		"masters release any value":    {8, []simFault{bareDEL}, quorum.Tally.Acquire, "relies on lock:"},
		"less than a quorum is enough": {12, nil, lessThanAQuorum, "relies on lock:"},
		"a master is gone":             {1, []simFault{{name: "cut", begin: cutLinks}, vanish}, quorum.Tally.Acquire, "p1 reaches 4 of 5 masters when all is well"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func(was func([]quorum.Answer[bool], time.Duration) Verdict) { isAcquired = was }(isAcquired)
			isAcquired = ballot.Tallied(broken.rule)
			for seed := broken.seed; seed < broken.seed+100; seed++ {
				k := shrink(t, seed, simOptions{faults: broken.faults})
				if k.shortest == nil {
					continue
				}
				t.Logf("%d runs", k.runs)
				story := k.shortest.story()
				if most := 12; len(k.kept) > most || !strings.Contains(story, broken.shows) {
					t.Errorf("%d rounds and faults are left, and at most %d are expected: %q", len(k.kept), most, k.kept)
				}
				compareStory(t, "testdata/shrunk/"+strings.ReplaceAll(name, " ", "_")+".txt", story)
				return
			}
			t.Error("nothing was found")
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
		t.Errorf("%s differs (%v). If the code that changed may send something else, or at another time, write it with: go test ./redlock -run '^TestSimulationFindsAndShrinks$' -sim.write\nnow:\n%s", name, err, story)
	}
}
