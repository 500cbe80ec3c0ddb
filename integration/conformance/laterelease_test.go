package conformance

import (
	"fmt"
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// lateReleasers are libraries that compare the holder at release. But they refuse a release
// by a client that never took the lock.
var lateReleasers = []string{
	"ShedLock 7.10.1 redis-spring, safeUpdate",
	"Spring RedisLockRegistry 6.5.5 spin lock",
	"Spring RedisLockRegistry 7.1.0 spin lock",
}

// TestLateReleaseByLibraries: a client releases its lock after the lock has expired and
// another client has taken it.
func TestLateReleaseByLibraries(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	for _, name := range lateReleasers {
		library := libraryNamed(t, name)
		t.Run(name, func(t *testing.T) {
			if library.version == "6.5.5" {
				layer.Only(t, layer.Long, "an old version")
			}
			proxy := c.AddProxy(t, rig.Options{Rules: []string{"*lock:*"}})
			program := library.program(t)
			start := func(name string) *conformanceClient {
				client, err := startConformanceClient(t, name, program, proxy.Port, library.selects)
				if err != nil {
					t.Fatal(err)
				}
				return client
			}
			s := &conformanceRun{t: t, cluster: c, library: library, lock: "lock:late-release", where: map[string][]string{},
				first: start("the next holder"), second: start("the late one")}
			s.says(s.second, "yes", "acquire", s.lock, s.shortest())
			s.patiently("the lock has expired", func() error {
				if answer := s.asks(s.first, "acquire", s.lock, conformanceTTL); answer != "yes" {
					return fmt.Errorf("acquire is answered %q", answer)
				}
				return nil
			})
			s.onQuorum(s.lock)
			before := s.settledContents(s.lock)
			s.asks(s.second, "release", s.lock) // some libraries answer no, others report nothing
			s.holdsStill(s.lock, before)
			s.says(s.first, "yes", "release", s.lock)
			s.gone(s.lock)
			if s.err != nil {
				t.Errorf("%v\n%s%s", s.err, s.first.log.Tail(20), s.second.log.Tail(20))
			}
			for _, client := range []*conformanceClient{s.first, s.second} {
				if err := client.finish(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
