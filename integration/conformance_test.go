package integration

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// conformanceWorkers is how many libraries run at once, each alone on masters,
// an upstream and a proxy of its own. They mostly wait for TTLs.
const conformanceWorkers = 4

// conformanceQuarantine is how long masters that came back empty do not vote:
// shorter than the locks' TTLs, so that the next library soon has all five.
const conformanceQuarantine = 3 * time.Second

// TestConformance drives every library of conformanceLibraries, unmodified,
// through every scenario, and holds the README's table against what came out.
func TestConformance(t *testing.T) {
	publishConformance(t, runConformance(t, conformanceLibraries, func() *cluster { return startServers(t) }))
}

// TestConformanceOverValkey does the same with some of the libraries and
// Valkey servers, as masters and as the upstream.
func TestConformanceOverValkey(t *testing.T) {
	libraries := slices.DeleteFunc(slices.Clone(conformanceLibraries), func(l conformanceLibrary) bool { return !l.overValkey })
	runConformance(t, libraries, func() *cluster { return startServersOf(t, "valkey-server") })
}

// TestCorpusOverValkey: what lock libraries send gets the same bytes from a
// proxy over Valkey servers as from one Valkey server, but for one error that
// libraries know only in Redis's words.
func TestCorpusOverValkey(t *testing.T) {
	c := startServersOf(t, "valkey-server")
	c.proxy = c.addProxy(t, proxyOptions{})
	plain := newRedis(t, "plain")
	plain.binary = "valkey-server"
	plain.start(t)
	inRedisWords := func(reply []byte) []byte {
		if string(reply) == "-NOSCRIPT No matching script.\r\n" {
			return []byte("-NOSCRIPT No matching script. Please use EVAL.\r\n")
		}
		return reply
	}
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := differential{plain: plain, addr: c.proxy.addr(), protocol: protocol, states: c.waitQuorumStates, reword: inRedisWords}
			d.run(t, corpus())
		})
	}
}

// A conformanceStage is where one library at a time is tried: servers, and a
// proxy for each lock rule, started when first needed.
type conformanceStage struct {
	cluster *cluster
	proxies map[string]*proxyProcess
}

func (s *conformanceStage) proxyWith(t *testing.T, rule string) *proxyProcess {
	if s.proxies[rule] == nil {
		s.proxies[rule] = s.cluster.addProxy(t, proxyOptions{
			rules: []string{rule}, restartDelay: conformanceQuarantine, maxQuarantine: conformanceQuarantine,
		})
	}
	return s.proxies[rule]
}

// conformanceResult is what came out for one library.
type conformanceResult struct {
	library conformanceLibrary
	version string           // as its program says
	failed  map[string]error // by scenario; errUnsupported: it has no such thing
}

// runConformance returns the results of the libraries that were run, in the
// order of the list.
func runConformance(outer *testing.T, libraries []conformanceLibrary, newServers func() *cluster) []conformanceResult {
	libraries = sortedByLibrary(libraries)
	results := make([]*conformanceResult, len(libraries))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(conformanceWorkers, len(libraries)) {
		wg.Go(func() {
			var own *conformanceStage
			for i := range next {
				outer.Run(strings.ReplaceAll(libraries[i].name(), "/", "-"), func(t *testing.T) {
					if own == nil {
						own = &conformanceStage{newServers(), map[string]*proxyProcess{}}
					}
					proxy := own.proxyWith(outer, cmp.Or(libraries[i].rule, "lock:*"))
					results[i] = conform(t, own.cluster, proxy, libraries[i], fmt.Sprintf("lock:conf-%d", i))
				})
			}
		})
	}
	for i := range libraries {
		next <- i
	}
	close(next)
	wg.Wait()
	var ran []conformanceResult
	for _, result := range results {
		if result != nil {
			ran = append(ran, *result)
		}
	}
	return ran
}

// conform takes one library through all scenarios, each on a lock of its own
// below locks.
func conform(t *testing.T, c *cluster, proxy *proxyProcess, library conformanceLibrary, locks string) *conformanceResult {
	program := library.program(t)
	start := func(name string) (*conformanceClient, error) {
		return startConformanceClient(t, name, program, proxy.port, library.selects)
	}
	var first, second *conformanceClient
	restart := func() {
		for _, client := range []*conformanceClient{first, second} {
			if client != nil {
				client.kill()
			}
		}
		var err error
		if first, err = start("the first client"); err != nil {
			t.Fatal(err)
		}
		if second, err = start("the second client"); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	result := &conformanceResult{library: library, failed: map[string]error{}}
	var err error
	if result.version, err = first.ask("version"); err != nil {
		t.Fatalf("%v\n%s", err, first.log)
	}
	if library.version != "" && result.version != library.version {
		t.Errorf("the library is %s, not %s", result.version, library.version)
	}
	if err := library.keptUnderItsRule(first, locks); err != nil {
		t.Error(err)
	}
	ready := &conformanceRun{t: t, cluster: c, proxy: proxy}
	if ready.allVote(); ready.err != nil {
		t.Fatal(ready.err)
	}
	broken := false
	for _, scenario := range conformanceScenarios {
		if c.toys && slices.Contains(scenariosOfServers, scenario.name) {
			continue
		}
		run := &conformanceRun{t: t, cluster: c, proxy: proxy, library: library, first: first, second: second, start: start,
			lock: locks + ":" + strings.ReplaceAll(scenario.name, " ", "-"), where: map[string][]string{}}
		scenario.run(run)
		result.failed[scenario.name] = run.err
		if err := library.judge(scenario.name, run.err); err != nil {
			t.Errorf("%s: %v\nfirst client:\n%ssecond client:\n%s", scenario.name, err, first.log.Tail(30), second.log.Tail(30))
		}
		switch {
		case errors.Is(run.err, errUnsupported):
			_, _ = first.ask("release", run.lock)
			_, _ = second.ask("release", run.lock)
		case run.err != nil:
			broken = true
			restart()
		}
	}
	for _, client := range []*conformanceClient{first, second} {
		if err := client.finish(); err != nil {
			t.Errorf("%v\n%s", err, client.log.Tail(30))
		}
	}
	if !broken {
		after := &conformanceRun{t: t, cluster: c, library: library}
		if after.leavesNothing(locks + ":"); after.err != nil {
			t.Error(after.err)
		}
	}
	return result
}

// keptUnderItsRule tells whether a lock's keys are where the list says.
func (l conformanceLibrary) keptUnderItsRule(client *conformanceClient, lock string) error {
	keys, err := client.ask("key", lock)
	for _, key := range strings.Fields(keys) {
		if covered, _ := path.Match(cmp.Or(l.rule, "lock:*"), key); err == nil && !covered {
			err = fmt.Errorf("the lock is kept under %q, which the list's rule does not cover", key)
		}
	}
	return err
}

// judge holds what came out against what the list says.
func (l conformanceLibrary) judge(scenario string, err error) error {
	_, skipped := l.skips[scenario]
	_, broken := l.fails[scenario]
	switch {
	case errors.Is(err, errUnsupported) && !skipped:
		return errors.New("the program says it is unsupported; the list must give the reason")
	case errors.Is(err, errUnsupported):
		return nil
	case skipped && err == nil:
		return errors.New("it is supported; the list says it is not")
	case broken && err == nil:
		return errors.New("it works now; the list says it cannot")
	case broken:
		return nil
	}
	return err
}
