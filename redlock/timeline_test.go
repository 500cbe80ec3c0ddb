package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/integration/fault"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/sim"
	"redlock-proxy/redlock/toymaster"
)

// Timelines: one word for each of five masters says what it does, and a test checks the
// result. Time is that of a sim.World, so it is exact. The words:
//
//	ok@5ms    the key is free, and answers take 5 ms (1 ms without a time)
//	no@5ms    another client holds the key there
//	lost@5ms  the connection breaks before the next question arrives
//	cut@5ms   the connection breaks after the next question was executed
//
// The other words are names of faults: pause, mute, refuse, kill.
type timeline struct {
	*sim.World
	t       *testing.T
	masters []*toymaster.Master
	links   []*toymaster.Link
	locker  *Locker
	others  []*Locker
	loop    *loop.Loop
	log     []toymaster.Execution
	probes  probes

	embedded bool // the masters are embedded ones
}

const (
	key     = "lock:timeline"
	foreign = "the token of another client"
	tokenA  = "client A's own random token"
	tokenB  = "client B's own random token"
	tokenC  = "client C's own random token"
	short   = "1"

	timeout = 50 * time.Millisecond
	second  = time.Second
)

func timelineConfig() Config {
	return Config{MasterTimeout: timeout, ClockDrift: 0.01, RestartDelay: 30 * second, New: true, slept: neverSuspended}
}

// neverSuspended is the time for which a machine in a bubble was suspended. The clocks of the real
// machine have nothing to do with the bubble's.
func neverSuspended() time.Duration { return 0 }

// onTimeline runs test in a World, with a Locker that is connected to one master for
// each word of script.
func onTimeline(t *testing.T, script string, test func(t *testing.T, w *timeline)) {
	t.Helper()
	onTimelineWith(t, timelineConfig(), script, test)
}

func onTimelineWith(t *testing.T, cfg Config, script string, test func(t *testing.T, w *timeline)) {
	t.Helper()
	inWorld(t, len(strings.Fields(script)), func(t *testing.T, w *timeline) {
		w.locker, w.links = w.connect("p", cfg)
		w.play(script)
		test(t, w)
	})
}

// inWorld runs test in a World with masters that no Locker has seen. All that happens, also at one moment,
// happens in one order, and always in the same. So test may wait only by what the World can see: sleep, Wait,
// Settle, and the ends of crews.
func inWorld(t *testing.T, masters int, test func(t *testing.T, w *timeline)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newTimeline(t)
		w.addMasters(masters)
		defer w.Close()
		w.Run(func() {
			defer w.end()
			test(t, w)
		})
	})
}

func newTimeline(t *testing.T) *timeline {
	w := &timeline{t: t, probes: probes{}, World: sim.NewWorld(1)}
	w.loop = w.Loop(slog.New(slog.DiscardHandler))
	return w
}

// sleep lets d pass.
func (w *timeline) sleep(d time.Duration) { w.Wait(d) }

// goneAfter is the context of a client that goes away after d.
func (w *timeline) goneAfter(d time.Duration) context.Context {
	gone, leave := context.WithCancel(context.Background())
	w.After(d, leave)
	return gone
}

// A crew is what runs beside a test. It is used like a sync.WaitGroup.
type crew struct {
	in *loop.Loop
	of sync.WaitGroup
}

func (w *timeline) crew() *crew { return &crew{in: w.loop} }

func (c *crew) Go(f func()) { c.in.Spawn(&c.of, f) }
func (c *crew) Wait()       { c.in.Join(&c.of) }

// begin begins f beside the test. wait returns its result, once there is one.
func begin[T any](w *timeline, f func() T) (wait func() T) {
	var result T
	c := w.crew()
	c.Go(func() { result = f() })
	return func() T {
		c.Wait()
		return result
	}
}

// beginAcquire begins an acquire beside the test.
func (w *timeline) beginAcquire(value string, ttl time.Duration) (wait func() Outcome) {
	return begin(w, func() Outcome {
		o, _ := w.acquire(value, ttl)
		return o
	})
}

// dial makes a Locker with links of its own. Each link may have a delay, from its first dial on.
func (w *timeline) dial(name string, cfg Config, delays ...time.Duration) (*Locker, []*toymaster.Link) {
	var links []*toymaster.Link
	cfg.Masters, cfg.Loop = nil, w.loop
	for i, m := range w.masters {
		k := toymaster.NewLink(fmt.Sprintf("%s-%s", name, m.Name), m, uint64(i), w.World)
		if i < len(delays) {
			k.SetDelay(delays[i], 0)
		}
		links = append(links, k)
		cfg.Masters = append(cfg.Masters, Master{Name: m.Name, Embedded: w.embedded, Dial: func(ctx context.Context) (net.Conn, error) { return k.Dial(ctx) }})
	}
	l, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return l, links
}

// connect is dial, and waits until all masters vote.
func (w *timeline) connect(name string, cfg Config) (*Locker, []*toymaster.Link) {
	l, links := w.dial(name, cfg)
	for deadline := time.Now().Add(3 * second); !l.allVote() && time.Now().Before(deadline); {
		w.sleep(time.Millisecond)
	}
	if up, all := l.reachable(), l.masters.List().Size(); up != all {
		w.t.Fatalf("connected to %d of %d masters", up, all)
	}
	return l, links
}

// allVote tells whether all masters vote.
func (l *Locker) allVote() bool {
	voting, _ := l.Prospects(0, time.Now())
	return voting == l.masters.List().Size()
}

// reachable counts the masters that answer.
func (l *Locker) reachable() int {
	n := 0
	for _, m := range l.Status().Masters {
		if m.State != roster.Unreachable {
			n++
		}
	}
	return n
}

// another makes a second Locker over the same masters, with links that work.
func (w *timeline) another(cfg Config) *Locker {
	l, _ := w.connect(fmt.Sprintf("p%d", len(w.others)+2), cfg)
	w.others = append(w.others, l)
	return l
}

// end closes all Lockers.
func (w *timeline) end() {
	for _, l := range append(w.others, w.locker) {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		l.Close(gone)
	}
}

// play makes the masters behave as script says from now on.
func (w *timeline) play(script string) {
	w.t.Helper()
	for i, word := range strings.Fields(script) {
		verb, after, delayed := strings.Cut(word, "@")
		delay := time.Millisecond
		if delayed {
			var err error
			if delay, err = time.ParseDuration(after); err != nil {
				w.t.Fatal(err)
			}
		}
		m, k := w.masters[i], w.links[i]
		k.ReplyDelay = delay
		k.Deliver()
		m.Refuse("")
		switch verb {
		case "ok":
		case "no":
			m.Put(key, foreign, time.Hour)
		case fault.Pause:
			m.Pause()
		case fault.Mute:
			k.Mute()
		case fault.Refuse:
			m.Refuse("LOADING Redis is loading the dataset in memory")
		case "lost":
			k.LoseQuestion(delay)
		case "cut":
			k.LoseAnswer(delay)
		case fault.Kill:
			m.Kill()
			w.sleep(time.Millisecond)
		default:
			w.t.Fatalf("no master does %q", word)
		}
	}
}

// put makes the masters hold what words mean. - means that a master keeps what it has.
func (w *timeline) put(values string, ttl time.Duration) {
	for i, v := range strings.Fields(values) {
		if v != "-" {
			w.masters[i].Put(key, meant(v), ttl)
		}
	}
}

func (w *timeline) note(x toymaster.Execution) {
	if w.probes.goesOn(x) || slices.ContainsFunc(x.Args, func(arg []byte) bool { return string(arg) == marker.Key }) || string(x.Args[0]) == "TIME" {
		return // what masters are asked to be judged is not what a script hears
	}
	w.log = append(w.log, x)
}

// acquire asks for the lock and returns the time that took.
func (w *timeline) acquire(value string, ttl time.Duration) (Outcome, time.Duration) {
	began := time.Now()
	o := w.locker.Acquire(context.Background(), AcquireRequest{Key: []byte(key), Value: []byte(value), TTL: ttl})
	return o, time.Since(began)
}

func (w *timeline) mustAcquire(value string, ttl time.Duration) {
	w.t.Helper()
	if o, _ := w.acquire(value, ttl); o.Verdict != Won {
		w.t.Fatalf("acquire: %+v", o)
	}
}

// wantVerdict checks an outcome and its time.
func (w *timeline) wantVerdict(o Outcome, took time.Duration, verdict Verdict, after time.Duration) {
	w.t.Helper()
	if o.Verdict != verdict || took != after {
		w.t.Errorf("%v (value %q) after %v, want %v after %v", o.Verdict, o.Value, took, verdict, after)
	}
}

// wantValues checks each master's value under the key: A, B, C, 1, X for another client's
// token, or - for none.
func (w *timeline) wantValues(want string) {
	w.t.Helper()
	names := map[string]string{"": "-", tokenA: "A", tokenB: "B", tokenC: "C", foreign: "X"}
	var got []string
	for _, m := range w.masters {
		v := m.Value(key)
		if name, ok := names[v]; ok {
			v = name
		}
		got = append(got, v)
	}
	if s := strings.Join(got, " "); s != want {
		w.t.Errorf("the masters hold %q, want %q", s, want)
		w.dump()
	}
}

// executions returns all commands that masters have executed.
func (w *timeline) executions() []toymaster.Execution {
	return slices.Clone(w.log)
}

func (w *timeline) dump() {
	for _, x := range w.executions() {
		if name := string(x.Args[0]); name != "INFO" && name != "ROLE" {
			w.t.Logf("%s %v", x.At.Format("05.000000"), x)
		}
	}
}

// elapse lets d pass. If d is 0, it lets enough time pass for everything under way.
func (w *timeline) elapse(d time.Duration) {
	if d == 0 {
		d = 100 * time.Millisecond
	}
	w.sleep(d)
	w.Settle()
}
