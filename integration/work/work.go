// Package work has the clients that lock all the time while a test does something to servers and proxies, and judges what
// they heard. A test starts them in one line, goes through its steps, and asks for the verdict:
//
//	w := work.Start(t, work.Options{At: work.Through(first, second)})
//	... an operator's steps, and w.GoesOn(t, 0) between them
//	w.Check(t)
//
// styles.go and fair.go have the ways in which applications lock, client.go the habits of one client. No two clients may
// rely on a lock at the same time: registers see that when it happens, and history.Check examines all calls afterwards.
package work

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// Options say who works, and how. Most tests want the zero value, with the places.
type Options struct {
	At       []string      // the addresses of proxies, or of one Redis
	Styles   []Style       // nil: tokens
	Clients  int           // of each style; 0: 6
	Keepers  int           // more clients, each of which keeps a lock of its own all the time
	Shortest time.Duration // lease
	Longest  time.Duration // lease; 0: 2s
	Wait     time.Duration // for an answer; 0: rig.Patience
	Roam     bool          // a client asks at another place each time, and does not stay at one
	Sessions bool          // each turn of a client has a connection of its own
	Careless bool          // some holders overstay or die
	Random   *rand.Rand    // nil: seed 1
}

// Through returns the addresses of proxies.
func Through(proxies ...*rig.Proxy) (at []string) {
	for _, p := range proxies {
		at = append(at, p.Addr())
	}
	return at
}

// Work is clients that lock all the time.
type Work struct {
	Options
	Registers map[string]*history.Register // by key
	Began     time.Time                    // the times of calls count from here
	clients   []*client
	pools     map[int][]*redis.Client // by database, for each place
	granted   []atomic.Int64          // at each place
	stop      func()
}

// Start starts the clients. They end with the test, if not before.
func Start(t testing.TB, o Options) *Work {
	t.Helper()
	if o.Styles == nil {
		o.Styles = Styles[:1]
	}
	o.Clients, o.Longest, o.Wait = cmp.Or(o.Clients, 6), cmp.Or(o.Longest, 2*time.Second), cmp.Or(o.Wait, rig.Patience)
	o.Shortest = cmp.Or(o.Shortest, o.Longest)
	if o.Random == nil {
		o.Random = rand.New(rand.NewPCG(1, 0))
	}
	w := &Work{Options: o, Registers: map[string]*history.Register{}, Began: time.Now(), pools: map[int][]*redis.Client{}, granted: make([]atomic.Int64, len(o.At))}
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	w.stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
		for _, pools := range w.pools {
			for _, pool := range pools {
				pool.Close()
			}
		}
	})
	t.Cleanup(w.stop)
	for range o.Clients {
		for _, style := range o.Styles {
			w.add(style, false)
		}
	}
	for i := range o.Keepers {
		style := Styles[0]
		style.Key = fmt.Sprintf("lock:kept:%d", i)
		w.add(style, true)
	}
	for _, c := range w.clients {
		working.Go(func() { c.run(ctx, func(turn int) string { return fmt.Sprintf("client-%02d-turn-%08d", c.id, turn) }) })
	}
	return w
}

func (w *Work) add(style Style, keeps bool) {
	if w.Registers[style.Key] == nil {
		w.Registers[style.Key] = &history.Register{Key: style.Key}
	}
	if w.pools[style.DB] == nil {
		for _, addr := range w.At {
			w.pools[style.DB] = append(w.pools[style.DB], connect(addr, style.DB, 1+w.Clients*len(w.Styles)+w.Keepers))
		}
	}
	c := &client{work: w, id: len(w.clients), style: style, keeps: keeps, register: w.Registers[style.Key]}
	c.random = rand.New(rand.NewPCG(w.Random.Uint64(), uint64(c.id)))
	switch {
	case style.Constant:
		c.stays.Store(int32(len(w.At) - 1))
	case w.Roam:
		c.stays.Store(-1)
	default:
		c.stays.Store(int32(c.id % len(w.At)))
	}
	w.clients = append(w.clients, c)
}

// Move makes a client lock at another place from its next call on.
func (w *Work) Move(client, at int) { w.clients[client].stays.Store(int32(at)) }

// Grants counts the acquires granted so far.
func (w *Work) Grants() (n int64) {
	for i := range w.granted {
		n += w.granted[i].Load()
	}
	return n
}

// GoesOn waits until locks were taken at each of these places, several at each.
func (w *Work) GoesOn(t testing.TB, places ...int) {
	t.Helper()
	const several = 5
	for _, at := range places {
		before := w.granted[at].Load()
		rig.WaitFor(t, fmt.Sprintf("clients lock at %s", w.At[at]), func() error {
			if n := w.granted[at].Load() - before; n < several {
				return fmt.Errorf("%d times since, and they heard %v", n, w.kinds(w.Failures(at)))
			}
			return nil
		})
	}
}

// EachHolds waits until each of these clients was granted a lock that it asked for from now on.
func (w *Work) EachHolds(t testing.TB, clients ...int) {
	t.Helper()
	for _, i := range clients {
		c := w.clients[i]
		before := c.granted.Load()
		rig.WaitFor(t, fmt.Sprintf("client %d locks", i), func() error {
			if c.granted.Load() < before+2 { // the first may have been asked for before
				return fmt.Errorf("it does not, and its errors are %v", w.kinds(w.Failures(int(c.stays.Load()))))
			}
			return nil
		})
	}
}

// Granted tells how many locks a client was granted.
func (w *Work) Granted(client int) int64 { return w.clients[client].granted.Load() }

// Failures returns the errors heard at some places; at all of them if none is given.
func (w *Work) Failures(places ...int) (all []Failure) {
	for _, c := range w.clients {
		c.mu.Lock()
		for _, f := range c.failures {
			if len(places) == 0 || slices.Contains(places, f.at) {
				all = append(all, f)
			}
		}
		c.mu.Unlock()
	}
	return all
}

func (w *Work) kinds(failures []Failure) map[string]int {
	kinds := map[string]int{}
	for _, f := range failures {
		kinds[fmt.Sprintf("%s: %s", f.asked, KindOf(f.Err))]++
	}
	return kinds
}

// Breached tells, while the clients work, whether a register has seen two holders.
func (w *Work) Breached() bool {
	for _, r := range w.Registers {
		r.Mu.Lock()
		n := len(r.Breaches)
		r.Mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// Stop ends the work. It returns what broke a promise: what registers have seen, and what history.Check has found.
func (w *Work) Stop() (calls []history.Call, wrong []history.Violation) {
	w.stop()
	for _, c := range w.clients {
		calls = append(calls, c.calls...)
	}
	slices.SortStableFunc(calls, func(a, b history.Call) int { return cmp.Compare(a.Begin, b.Begin) })
	for _, key := range slices.Sorted(maps.Keys(w.Registers)) {
		wrong = append(wrong, w.Registers[key].Breaches...)
	}
	return calls, append(wrong, history.Check(w.Began, calls)...)
}

// Report prints what clients asked and heard.
func (w *Work) Report(t testing.TB, calls []history.Call) {
	answers, styles, longest := map[string]int{}, map[string]int{}, time.Duration(0)
	for _, call := range calls {
		answers[fmt.Sprintf("%s %s", call.Asked, call.Answer)]++
		longest = max(longest, call.End-call.Begin)
		if call.Asked == history.AskAcquire && call.Answer == history.Yes {
			styles[w.clients[call.Client].style.Name]++
		}
	}
	writes, fenced := 0, 0
	for _, r := range w.Registers {
		writes, fenced = writes+r.Writes, fenced+r.Fenced
	}
	t.Logf("work of %s: %v; grants by style %v; longest wait %s", time.Since(w.Began).Round(time.Second), answers, styles, longest.Round(time.Millisecond))
	t.Logf("errors: %v; %d writes under a lock, %d of holders that had overstayed were fenced off", w.kinds(w.Failures()), writes, fenced)
}

// Check ends the work and fails the test if two clients relied on a lock, if an answer was not possible with one lock on one server,
// if no lock was granted, or if a client heard an error. Two kinds of errors are expected: QUORUMLOST, which
// says that too few masters answered in time, as on any busy machine; and those that begin with one of these texts.
func (w *Work) Check(t testing.TB, expected ...string) {
	t.Helper()
	calls, wrong := w.Stop()
	w.Report(t, calls)
	for _, v := range wrong[:min(len(wrong), 5)] {
		t.Errorf("%s: %s", history.Stamp(v.At.Sub(w.Began)), v.What)
	}
	for _, c := range w.clients {
		if n := c.granted.Load(); c.keeps && n != 1 {
			t.Errorf("client %d took the lock that it keeps %d times", c.id, n)
		}
	}
	if w.Grants() == 0 {
		t.Error("no lock was granted")
	}
	w.Heard(t, w.Failures(), expected...)
}

// Heard fails the test because of errors that are not expected.
func (w *Work) Heard(t testing.TB, failures []Failure, expected ...string) {
	t.Helper()
	for _, f := range failures {
		if !slices.ContainsFunc(append(expected, "QUORUMLOST "), func(text string) bool { return strings.HasPrefix(f.Err.Error(), text) }) {
			t.Errorf("at %s, %s at %s: %v", f.When.UTC().Format(time.TimeOnly), f.asked, w.At[f.at], f.Err)
		}
	}
}

// KindOf returns an error's text without its numbers and addresses, so that equal errors
// can be counted together.
func KindOf(err error) string {
	kind, _, _ := strings.Cut(anyNumber.ReplaceAllString(err.Error(), "#"), ";")
	return kind
}

var anyNumber = regexp.MustCompile("[0-9][0-9.:]*")
