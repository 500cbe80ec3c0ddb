package conformance

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

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// conformanceWorkers is the number of libraries that run at once. Each has its own masters,
// upstream and proxy. They mostly wait for TTLs.
const conformanceWorkers = 6

// conformanceQuarantine is the quarantine of masters that came back empty. It is shorter
// than the locks' TTLs, so that the next library soon has all five masters.
const conformanceQuarantine = 4 * time.Second

// TestConformance takes every library of conformanceLibraries, unmodified, through every
// scenario. It compares the results with the table in the README.
func TestConformance(t *testing.T) {
	t.Parallel()
	publishConformance(t, runConformance(t, ofThisTier(t, conformanceLibraries), func() *rig.Cluster { return rig.StartServers(t) }))
}

// TestConformanceOverValkey is TestConformance for some of the libraries, with Valkey
// servers as the masters and the upstream.
func TestConformanceOverValkey(t *testing.T) {
	layer.Only(t, layer.Long, "runs over Valkey")
	rig.Need(t, rig.ValkeyServer)
	libraries := slices.DeleteFunc(slices.Clone(conformanceLibraries), func(l conformanceLibrary) bool { return !l.overValkey })
	runConformance(t, libraries, func() *rig.Cluster { return rig.StartServersOf(t, "valkey-server") })
}

// A conformanceStage has the servers for one library at a time. It has a proxy for each
// lock rule, started at the first use.
type conformanceStage struct {
	cluster *rig.Cluster
	proxies map[string]*rig.Proxy
}

func (s *conformanceStage) proxyWith(t *testing.T, rule string) *rig.Proxy {
	if s.proxies[rule] == nil {
		s.proxies[rule] = s.cluster.AddProxy(t, rig.Options{
			Rules: []string{rule}, RestartDelay: conformanceQuarantine, MaxQuarantine: conformanceQuarantine,
		})
	}
	return s.proxies[rule]
}

// conformanceResult is the outcome for one library.
type conformanceResult struct {
	library conformanceLibrary
	version string           // from its program
	failed  map[string]error // by scenario; errUnsupported: the library has no means for it
}

// runConformance returns the results of the libraries that ran, in the order of the list.
func runConformance(outer *testing.T, libraries []conformanceLibrary, newServers func() *rig.Cluster) []conformanceResult {
	libraries = sortedByLibrary(libraries)
	results := make([]*conformanceResult, len(libraries))
	next := make(chan int, len(libraries))
	for i := range libraries {
		next <- i
	}
	close(next) // before the workers start: each ends early if its servers or proxy do not start
	var wg sync.WaitGroup
	for range min(conformanceWorkers, len(libraries)) {
		wg.Go(func() {
			var own *conformanceStage
			for i := range next {
				outer.Run(strings.ReplaceAll(libraries[i].name(), "/", "-"), func(t *testing.T) {
					if own == nil {
						own = &conformanceStage{newServers(), map[string]*rig.Proxy{}}
					}
					proxy := own.proxyWith(outer, cmp.Or(libraries[i].rule, "lock:*"))
					results[i] = conform(t, own.cluster, proxy, libraries[i], fmt.Sprintf("lock:conf-%d", i))
				})
			}
		})
	}
	wg.Wait()
	var ran []conformanceResult
	for _, result := range results {
		if result != nil {
			ran = append(ran, *result)
		}
	}
	return ran
}

// conform takes one library through all scenarios. The name of each scenario's lock begins
// with locks.
func conform(t *testing.T, c *rig.Cluster, proxy *rig.Proxy, library conformanceLibrary, locks string) *conformanceResult {
	program := library.program(t)
	start := func(name string) (*conformanceClient, error) {
		return startConformanceClient(t, name, program, proxy.Port, library.selects)
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
		if c.Embedded && slices.Contains(scenariosOfServers, scenario.name) {
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

// keptUnderItsRule tells whether the library's lock rule matches a lock's keys.
func (l conformanceLibrary) keptUnderItsRule(client *conformanceClient, lock string) error {
	keys, err := client.ask("key", lock)
	for _, key := range strings.Fields(keys) {
		if covered, _ := path.Match(cmp.Or(l.rule, "lock:*"), key); err == nil && !covered {
			err = fmt.Errorf("the lock is kept under %q, which the list's rule does not cover", key)
		}
	}
	return err
}

// judge compares the outcome with the library's entry in the list.
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
