package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestSoak has clients of every kind come, work and go through two proxies while
// servers die, hang and come back and the configuration is reloaded, and then
// requires that nothing of it is left in the proxies once everybody has gone:
// goroutines, open files and memory are what they were after the first part of
// the run. It also requires that every kind of client was served, that no reply
// was another's, and that no lock had two holders.
//
//	SOAK_TIME=1h go test ./integration -run '^TestSoak$' -timeout 2h
//
// says how long (40s if not given).
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK_TIME"), "40s"))
	if err != nil {
		t.Fatalf("SOAK_TIME: %v", err)
	}
	s := startSoak(t)
	// All that is made once and kept (connections to masters, tables, caches up
	// to their bounds) has been made when every kind of client and every fault was
	// there. A quarter of the time is for that.
	s.run(length / 4)
	var before []footprint
	for i, p := range s.proxies {
		s.connectEverywhere(p)
		before = append(before, p.settledFootprint(t))
		t.Logf("proxy %d after the first part: %s", i+1, before[i])
	}
	s.run(length - length/4)
	for i, p := range s.proxies {
		var after footprint
		waitFor(t, fmt.Sprintf("proxy %d is as it was", i+1), func() error {
			after = p.settledFootprint(t)
			return after.within(before[i])
		})
		t.Logf("proxy %d at the end: %s", i+1, after)
		if n := p.metric(t, "redlock_panics_recovered_total"); n != "0" {
			t.Errorf("proxy %d closed %s sessions because of a defect", i+1, n)
		}
	}
	s.report()
}

type soak struct {
	*cluster
	t        *testing.T
	options  proxyOptions
	proxies  []*proxyProcess
	register map[string]*register // by the lock's key
	random   *rand.Rand           // of the faults

	mu     sync.Mutex
	done   map[string]int // turns by habit
	failed map[string]int
	errors map[string]error // the last of each habit
	struck map[string]int
	wrong  []string
}

const (
	soakProxies      = 2
	soakRestartDelay = 2 * time.Second
	soakMoves        = 4 * time.Second // for how long a key that has moved is held back
	soakClients      = 2               // of each habit
	soakDatabases    = 4
)

func startSoak(t *testing.T) *soak {
	t.Helper()
	redis.SetLogger(silence{})
	s := &soak{
		t: t, cluster: startServers(t), register: map[string]*register{}, random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)),
		done: map[string]int{}, failed: map[string]int{}, errors: map[string]error{}, struck: map[string]int{},
	}
	s.options = s.with(proxyOptions{
		masterTimeout: 300 * time.Millisecond, restartDelay: soakRestartDelay, maxQuarantine: soakMoves, logLevel: "warn",
	})
	for range soakProxies {
		s.proxies = append(s.proxies, startProxy(t, s.options))
	}
	for _, style := range lockStyles {
		s.register[style.key] = &register{key: style.key}
	}
	return s
}

// run has all clients work and faults strike for that long, or until each fault
// has struck if that takes longer, and returns when all clients have gone and
// all servers are back.
func (s *soak) run(length time.Duration) {
	ctx, stop := context.WithCancel(s.t.Context())
	var working sync.WaitGroup
	for i, habit := range soakHabits() {
		for client := range soakClients {
			random := rand.New(rand.NewPCG(s.random.Uint64(), uint64(i)))
			working.Go(func() { s.work(ctx, habit, client, random) })
		}
	}
	s.faults(time.Now().Add(length))
	pause(ctx, time.Second) // everybody is served once more
	stop()
	working.Wait()
	for _, p := range s.proxies {
		for _, master := range s.masters {
			p.waitState(s.t, master, "certified")
		}
	}
}

// connectEverywhere has a proxy make the connections to masters that it keeps
// for a while: one in each database that clients use, and one to hear wake-ups.
// Which of them came to it so far is chance.
func (s *soak) connectEverywhere(p *proxyProcess) {
	s.t.Helper()
	ctx := s.t.Context()
	for db := range soakDatabases {
		client := redis.NewClient(&redis.Options{Addr: p.addr(), DB: db, MaxRetries: -1, ReadTimeout: patience})
		waitFor(s.t, fmt.Sprintf("a lock in database %d", db), func() error {
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

// work has a client of that habit come and go until it is over.
func (s *soak) work(over context.Context, habit soakHabit, client int, random *rand.Rand) {
	for turn := 0; over.Err() == nil; turn++ {
		// Not over's context: what has begun is ended as usual.
		ctx, cancel := context.WithTimeout(context.Background(), soakPatience)
		err := habit.turn(&soakTurn{
			soak: s, ctx: ctx, random: random,
			addr:  s.proxies[random.IntN(len(s.proxies))].addr(),
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
		pause(over, between(random, time.Millisecond, 30*time.Millisecond))
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
	for key, register := range s.register {
		for _, breach := range register.breaches[:min(len(register.breaches), 3)] {
			s.t.Errorf("%s: %s", key, breach.what)
		}
	}
}

// A footprint is what a process holds.
type footprint struct {
	goroutines, files float64
	heap              float64 // live bytes
}

func (f footprint) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f open files, %.1f MiB of heap", f.goroutines, f.files, f.heap/(1<<20))
}

// within tells what is more than before. A connection to a master that is being
// made anew, or the answer to who asks for metrics, is a few goroutines and
// files; a leak is one for each of thousands of turns. The heap as it can be seen
// from outside has garbage in it that was made since its last collection.
func (f footprint) within(before footprint) error {
	const few, garbage = 8, 4 << 20
	if f.goroutines > before.goroutines+few || f.files > before.files+few || f.heap > 1.2*before.heap+garbage {
		return fmt.Errorf("it has %s, and had %s", f, before)
	}
	return nil
}

// TestFootprint: what the soak judges by finds a leak of a few for each fault.
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

// settledFootprint waits until no client is connected and garbage was collected,
// to which asking for metrics again and again brings it, and is the least that
// was seen from then on.
func (p *proxyProcess) settledFootprint(t testing.TB) footprint {
	t.Helper()
	const collections = 4
	var least footprint
	var from float64
	waitFor(t, "the proxy has come to rest", func() error {
		var now footprint
		var collected float64
		for range 50 {
			seen := p.numbers(t)
			if n := seen["redlock_clients_connected"]; n > 0 {
				from, least = 0, footprint{}
				return fmt.Errorf("%.0f clients are connected", n)
			}
			now = footprint{seen["go_goroutines"], seen["process_open_fds"], seen["go_memstats_heap_alloc_bytes"]}
			collected = seen["go_gc_duration_seconds_count"]
			if from == 0 {
				from, least = collected, now
			}
			if collected >= from+2 { // pools are emptied by the second collection
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

// numbers are the values of all series without labels.
func (p *proxyProcess) numbers(t testing.TB) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for line := range strings.Lines(p.metrics(t)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			found[name] = number
		}
	}
	return found
}
