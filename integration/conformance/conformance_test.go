package conformance

import (
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
	"redlock-proxy/integration/testca"
)

// workers is the number of libraries that run at once. Each has its own masters, upstream and
// proxy. They mostly wait for TTLs.
const workers = 6

// quarantine is the quarantine of masters that came back empty. It is shorter than the locks'
// TTLs, so that the next library soon has all five masters.
const quarantine = 4 * time.Second

// TestConformance takes every library, unmodified, through every scenario. It compares the
// results with the table in the README.
func TestConformance(t *testing.T) {
	t.Parallel()
	all := allLibraries(t)
	publish(t, all, runConformance(t, ofThisTier(t, all), &stage{newServers: func() *rig.Cluster { return rig.StartServers(t) }}))
}

// TestConformanceOverValkey is TestConformance for some of the libraries, with Valkey
// servers as the masters and the upstream.
func TestConformanceOverValkey(t *testing.T) {
	layer.Only(t, layer.Long, "runs over Valkey")
	rig.Need(t, rig.ValkeyServer)
	libraries := slices.DeleteFunc(allLibraries(t), func(l library) bool { return !l.overValkey })
	runConformance(t, libraries, &stage{newServers: func() *rig.Cluster { return rig.StartServersOf(t, "valkey-server") }})
}

// TestConformanceOverTLS is TestConformance for libraries of each language that connect with
// TLS and a password, to a proxy without an upstream.
func TestConformanceOverTLS(t *testing.T) {
	t.Parallel()
	libraries := slices.DeleteFunc(allLibraries(t), func(l library) bool { return !l.overTLS })
	runConformance(t, libraries, &stage{newServers: func() *rig.Cluster { return rig.StartServers(t) }, authority: testca.New(t)})
}

// A stage has the servers for one library at a time. It has a proxy for each lock rule,
// started at the first use. With an authority, clients connect with TLS.
type stage struct {
	newServers func() *rig.Cluster
	authority  *testca.Authority
	cluster    *rig.Cluster
	proxies    map[string]*rig.Proxy
	ports      map[string]int
}

func (s *stage) proxyWith(t *testing.T, rule string) (proxy *rig.Proxy, port int) {
	if s.proxies[rule] == nil {
		options := rig.Options{Rules: []string{rule}, RestartDelay: quarantine, MaxQuarantine: quarantine}
		if s.authority != nil {
			shown := s.authority.Issue(60 * 24 * time.Hour) // so long that the proxy does not warn of the end
			s.ports[rule], options.Upstream = rig.FreePort(t), "none"
			options.More = fmt.Sprintf("tls: {listen: 127.0.0.1:%d, cert_file: %s, key_file: %s}\nauth: {password: correct-horse}\n",
				s.ports[rule], shown.CertFile, shown.KeyFile)
		}
		s.proxies[rule] = s.cluster.AddProxy(t, options)
		if s.authority == nil {
			s.ports[rule] = s.proxies[rule].Port
		}
	}
	return s.proxies[rule], s.ports[rule]
}

// result is the outcome for one library.
type result struct {
	library library
	version string           // from its program
	failed  map[string]error // by scenario; errUnsupported: the library has no means for it
}

// runConformance returns the results of the libraries that ran, sorted by library.
func runConformance(outer *testing.T, libraries []library, like *stage) []result {
	libraries = sorted(libraries)
	results := make([]*result, len(libraries))
	next := make(chan int, len(libraries))
	for i := range libraries {
		next <- i
	}
	close(next) // before the workers start: each ends early if its servers or proxy do not start
	var wg sync.WaitGroup
	for range min(workers, len(libraries)) {
		wg.Go(func() {
			own := *like
			for i := range next {
				outer.Run(libraries[i].testName(), func(t *testing.T) {
					if own.cluster == nil {
						own.cluster, own.proxies, own.ports = own.newServers(), map[string]*rig.Proxy{}, map[string]int{}
					}
					program := libraries[i].install(t)
					if own.authority != nil {
						program.env = append(program.env, "REDIS_TLS_CA="+own.authority.File, "REDIS_PASSWORD=correct-horse")
					}
					proxy, port := own.proxyWith(outer, libraries[i].rule)
					results[i] = conform(t, own.cluster, proxy, port, program, libraries[i], fmt.Sprintf("lock:conf-%d", i))
				})
			}
		})
	}
	wg.Wait()
	var ran []result
	for _, each := range results {
		if each != nil {
			ran = append(ran, *each)
		}
	}
	return ran
}

// conform takes one library through all scenarios. The name of each scenario's lock begins
// with locks.
func conform(t *testing.T, c *rig.Cluster, proxy *rig.Proxy, port int, program clientProgram, library library, locks string) *result {
	clients := map[string]*client{}
	start := func(name string) (*client, error) {
		return startClient(name, program, fmt.Sprint(port), library.selects)
	}
	kill := func() {
		for name, client := range clients {
			client.kill()
			delete(clients, name)
		}
	}
	defer kill()
	scenario := func(lock string) *run {
		return &run{t: t, cluster: c, proxy: proxy, library: library, start: start, clients: clients, lock: lock, where: map[string][]string{}}
	}
	ready := scenario(locks)
	first, second := ready.client("first"), ready.client("second")
	if ready.vote(rig.MasterCount); ready.err != nil {
		t.Fatal(ready.err)
	}
	result := &result{library: library, failed: map[string]error{}}
	var err error
	if result.version, err = first.ask("version"); err != nil {
		t.Fatalf("%v\n%s", err, first.log)
	}
	if library.version != "" && result.version != library.version {
		t.Errorf("the library is %s, not %s", result.version, library.version)
	}
	for _, key := range ready.keys(first, locks) {
		if covered, _ := path.Match(library.rule, key); !covered {
			t.Errorf("the lock is kept under %q, which the list's rule does not cover", key)
		}
	}
	broken := false
	for _, story := range stories(t, "scenarios") {
		if c.Embedded && strings.HasSuffix(story.Title, "masters killed") {
			continue // that is impossible with embedded ones
		}
		s := scenario(locks + ":" + strings.ReplaceAll(story.Title, " ", "-"))
		result.failed[story.Title] = s.tell(story)
		if err := library.judge(story.Title, result.failed[story.Title]); err != nil {
			t.Errorf("%s: %v", story.Title, err)
			for name, client := range clients {
				t.Logf("%s client:\n%s", name, client.log.Tail(30))
			}
		}
		switch err := result.failed[story.Title]; {
		case errors.Is(err, errUnsupported):
			_, _ = first.ask("release", s.lock)
			_, _ = second.ask("release", s.lock)
		case err != nil:
			broken = true
			kill()
			first, second = ready.client("first"), ready.client("second")
			if ready.err != nil {
				t.Fatal(ready.err)
			}
		}
	}
	for name, client := range clients {
		if err := client.finish(); err != nil {
			t.Errorf("%v\n%s", err, client.log.Tail(30))
		}
		delete(clients, name)
	}
	if !broken {
		if err := scenario(locks).leavesNothing(strings.TrimPrefix(locks, "lock:") + ":"); err != nil {
			t.Error(err)
		}
	}
	return result
}

// judge compares the outcome with the library's entry in the list.
func (l library) judge(scenario string, err error) error {
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
