package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
	"redlock-proxy/integration/work"

	"github.com/redis/go-redis/v9"
)

// TestSoak has clients of every kind connect, work and leave through two proxies, while
// servers die, hang and come back and the configuration is reloaded. When all clients have
// left, the proxies must have kept nothing: goroutines, open files and memory are what they
// were after the first part of the run. It also requires that every kind of client
// succeeded, that no reply belonged to another command, and that no lock had two holders.
//
//	REDLOCK_TEST=long SOAK_TIME=1h go test ./integration/campaign -run '^TestSoak$' -timeout 2h
//
// SOAK_TIME is the length, 40s if not given. The seed (layer.Seed) chooses the order of the
// faults.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK_TIME"), "40s"))
	if err != nil {
		t.Fatalf("SOAK_TIME: %v", err)
	}
	s := startSoak(t)
	// A proxy makes some things once and keeps them: connections to masters, tables,
	// caches up to their bounds. It has made them all after every kind of client and every
	// fault has occurred. A quarter of the time is for that.
	s.run(length / 4)
	var before []footprint
	for i, p := range s.proxies {
		s.connectEverywhere(p)
		before = append(before, settledFootprint(t, p))
		t.Logf("proxy %d after the first part: %s", i+1, before[i])
	}
	s.run(length - length/4)
	for i, p := range s.proxies {
		var after footprint
		rig.WaitFor(t, fmt.Sprintf("proxy %d is as it was", i+1), func() error {
			after = settledFootprint(t, p)
			return after.within(before[i])
		})
		t.Logf("proxy %d at the end: %s", i+1, after)
		if n := p.Metric(t, "redlock_panics_recovered_total"); n != "0" {
			t.Errorf("proxy %d closed %s sessions because of a defect", i+1, n)
		}
	}
	s.report()
}

type soak struct {
	*rig.Cluster
	t       *testing.T
	options rig.Options
	proxies []*rig.Proxy
	random  *rand.Rand // for the faults

	mu     sync.Mutex
	done   map[string]int // turns by habit
	failed map[string]int
	errors map[string]error // the latest of each habit
	struck map[string]int
	wrong  []string
}

const (
	soakProxies      = 2
	soakRestartDelay = 2100 * time.Millisecond
	soakMoves        = 4 * time.Second // the time for which a moved key is held back
	soakClients      = 2               // of each habit
	soakDatabases    = 4
)

func startSoak(t *testing.T) *soak {
	t.Helper()
	redis.SetLogger(rig.Silence{})
	s := &soak{
		t: t, Cluster: rig.StartServers(t), random: rand.New(rand.NewPCG(layer.Seed(t, "SOAK_TIME"), 0)),
		done: map[string]int{}, failed: map[string]int{}, errors: map[string]error{}, struck: map[string]int{},
	}
	s.options = s.With(rig.Options{
		MasterTimeout: 300 * time.Millisecond, RestartDelay: soakRestartDelay, MaxQuarantine: soakMoves, LogLevel: "warn",
	})
	for range soakProxies {
		s.proxies = append(s.proxies, rig.StartProxy(t, s.options))
	}
	return s
}

// run has all clients work and faults strike for that long, or longer, until each fault has
// struck. It returns when all clients have left and all servers are back.
func (s *soak) run(length time.Duration) {
	ctx, stop := context.WithCancel(s.t.Context())
	var working sync.WaitGroup
	locks := work.Start(s.t, work.Options{
		At: work.Through(s.proxies...), Styles: slices.DeleteFunc(slices.Clone(work.Styles), func(style work.Style) bool { return style.Constant }), Clients: soakClients, Roam: true, Sessions: true, Longest: soakLease, Wait: soakPatience, Random: s.random,
	})
	for i, habit := range soakHabits() {
		for client := range soakClients {
			random := rand.New(rand.NewPCG(s.random.Uint64(), uint64(i)))
			working.Go(func() { s.work(ctx, habit, client, random) })
		}
	}
	s.faults(time.Now().Add(length))
	rig.Pause(ctx, time.Second) // so that every client succeeds once more
	stop()
	working.Wait()
	locks.Check(s.t, "") // any error is expected while servers are away
	for _, p := range s.proxies {
		for _, master := range s.Masters {
			p.WaitState(s.t, master, "voting")
		}
	}
}

// connectEverywhere makes a proxy open all connections to masters that it keeps for a while:
// one for each database that clients use, and one for wake-ups. Which of them the run has
// opened so far is chance.
func (s *soak) connectEverywhere(p *rig.Proxy) {
	s.t.Helper()
	ctx := s.t.Context()
	for db := range soakDatabases {
		client := redis.NewClient(&redis.Options{Addr: p.Addr(), DB: db, MaxRetries: -1, ReadTimeout: rig.Patience})
		rig.WaitFor(s.t, fmt.Sprintf("a lock in database %d", db), func() error {
			return client.SetNX(ctx, "lock:first", "a token of sixteen bytes or more", time.Second).Err()
		})
		subscription := client.Subscribe(ctx, "lock:first")
		if _, err := subscription.Receive(ctx); err != nil {
			s.t.Fatal(err)
		}
		subscription.Close()
		client.Close()
	}
}

// work has clients of one habit connect and leave, one after the other, until over ends.
func (s *soak) work(over context.Context, habit soakHabit, client int, random *rand.Rand) {
	for turn := 0; over.Err() == nil; turn++ {
		// This is not the context over: a turn that has begun ends as usual.
		ctx, cancel := context.WithTimeout(context.Background(), soakPatience)
		err := habit.turn(&soakTurn{
			soak: s, ctx: ctx, random: random,
			addr:  s.proxies[random.IntN(len(s.proxies))].Addr(),
			token: fmt.Sprintf("%s-%d-turn-%010d", habit.name, client, turn),
		})
		cancel()
		s.mu.Lock()
		var misplaced *misplacedReply
		switch {
		case errors.As(err, &misplaced):
			s.wrong = append(s.wrong, habit.name+": "+err.Error())
		case err != nil:
			s.failed[habit.name]++
			s.errors[habit.name] = err
		default:
			s.done[habit.name]++
		}
		s.mu.Unlock()
		rig.Pause(over, rig.Between(random, time.Millisecond, 30*time.Millisecond))
	}
}

func (s *soak) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, habit := range soakHabits() {
		s.t.Logf("%s: %d turns went well, %d met a fault, the last %v", habit.name, s.done[habit.name], s.failed[habit.name], s.errors[habit.name])
	}
	s.t.Logf("faults: %v", s.struck)
	for _, habit := range soakHabits() {
		if s.done[habit.name] == 0 {
			s.t.Errorf("no client was ever served that is for %s: %v", habit.name, s.errors[habit.name])
		}
	}
	for _, wrong := range s.wrong[:min(len(s.wrong), 10)] {
		s.t.Error(wrong)
	}
}

// A footprint is the resources that a process uses.
type footprint struct {
	goroutines, files float64
	heap              float64 // live bytes
}

func (f footprint) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f open files, %.1f MiB of heap", f.goroutines, f.files, f.heap/(1<<20))
}

// within returns an error if the footprint is larger than before. A few goroutines and files
// more are fine: a connection to a master is being made again, or a request for the metrics
// is being answered. A leak would be one for each of thousands of turns. From outside, the
// heap includes garbage made since the last collection.
func (f footprint) within(before footprint) error {
	const few, garbage = 8, 4 << 20
	if f.goroutines > before.goroutines+few || f.files > before.files+few || f.heap > 1.2*before.heap+garbage {
		return fmt.Errorf("it has %s, and had %s", f, before)
	}
	return nil
}

// TestFootprint: the soak's check finds a leak of a few goroutines or files for each fault.
func TestFootprint(t *testing.T) {
	before := footprint{goroutines: 60, files: 40, heap: 5 << 20}
	for _, leak := range []footprint{{80, 40, 5 << 20}, {60, 60, 5 << 20}, {60, 40, 15 << 20}} {
		if leak.within(before) == nil {
			t.Errorf("%s after %s is fine", leak, before)
		}
	}
	if err := (footprint{64, 42, 6 << 20}).within(before); err != nil {
		t.Error(err)
	}
}

// settledFootprint waits until no client is connected and garbage was collected. Asking for
// the metrics again and again causes collections. It returns the least that it saw from then
// on.
func settledFootprint(t testing.TB, p *rig.Proxy) footprint {
	t.Helper()
	const collections = 4
	var least footprint
	var from float64
	rig.WaitFor(t, "the proxy has come to rest", func() error {
		var now footprint
		var collected float64
		for range 50 {
			seen := numbers(t, p)
			if n := seen["redlock_clients_connected"]; n > 0 {
				from, least = 0, footprint{}
				return fmt.Errorf("%.0f clients are connected", n)
			}
			now = footprint{seen["go_goroutines"], seen["process_open_fds"], seen["go_memstats_heap_alloc_bytes"]}
			collected = seen["go_gc_duration_seconds_count"]
			if from == 0 {
				from, least = collected, now
			}
			if collected >= from+2 { // the second collection empties pools
				least = footprint{min(least.goroutines, now.goroutines), min(least.files, now.files), min(least.heap, now.heap)}
			}
		}
		if collected < from+collections {
			return fmt.Errorf("%.0f collections of %d", collected-from, collections)
		}
		return nil
	})
	return least
}

// numbers returns the values of all series without labels.
func numbers(t testing.TB, p *rig.Proxy) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for line := range strings.Lines(p.Metrics(t)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			found[name] = number
		}
	}
	return found
}
