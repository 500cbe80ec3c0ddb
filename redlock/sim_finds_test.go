package redlock

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
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
	for _, m := range s.masters {
		m.mu.Lock()
		m.bareDEL = true
		m.mu.Unlock()
	}
	return nil, 0
}}

// The simulation finds two holders where there are some. Otherwise it would prove nothing
// when it finds none.
func TestSimulationFindsTwoHolders(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, f := range []simFault{loseLocks, bareDEL} {
		t.Run(f.name, func(t *testing.T) {
			for seed := range uint64(100) {
				var s *simulation
				synctest.Test(t, func(t *testing.T) {
					s = newSimulation(seed+1, false, nil)
					s.plan.faults = []simFault{f}
					s.run()
				})
				for _, c := range s.history.conflicts() {
					if strings.Contains(c.String(), "two holders of lock:") {
						t.Logf("seed %d: %s", seed+1, c)
						return
					}
				}
			}
			t.Error("no two clients ever held a lock together")
		})
	}
}
