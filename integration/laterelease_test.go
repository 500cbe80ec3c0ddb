package integration

import (
	"fmt"
	"slices"
	"testing"
)

// lateReleasers are libraries that compare the holder when they release, but
// let nobody try who has not taken the lock before.
var lateReleasers = []string{
	"ShedLock 7.10.1 redis-spring, safeUpdate",
	"Spring RedisLockRegistry 6.5.5 spin lock",
	"Spring RedisLockRegistry 7.1.0 spin lock",
}

// TestLateReleaseByLibraries has a client release what has expired and is another's by
// then.
func TestLateReleaseByLibraries(t *testing.T) {
	c := startServers(t)
	for _, name := range lateReleasers {
		at := slices.IndexFunc(conformanceLibraries, func(l conformanceLibrary) bool { return l.name() == name })
		if at < 0 {
			t.Fatalf("there is no %s", name)
		}
		library := conformanceLibraries[at]
		t.Run(name, func(t *testing.T) {
			proxy := c.addProxy(t, proxyOptions{rules: []string{"*lock:*"}})
			program := library.program(t)
			start := func(name string) *conformanceClient {
				client, err := startConformanceClient(t, name, program, proxy.port, library.selects)
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
			before := s.contents(s.lock)
			s.asks(s.second, "release", s.lock) // some libraries say no, others nothing
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
