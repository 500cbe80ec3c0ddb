package redlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
	"redlock-proxy/redlock/toymaster"
)

// Timelines at random moments, which no script has.

// Three proxies race to swap a value, and their progress differs from master to master. One at most is told the value
// of before. The value that is left is one that was won, if any was.
func TestTimelineRacingSwaps(t *testing.T) {
	numbers, tokens := [4]string{"1000.5", "2000.25", "2001.25", "2002.25"}, [4]string{foreign, tokenA, tokenB, tokenC}
	for order := range 64 {
		random := rand.New(rand.NewPCG(uint64(order), 1))
		values := [][4]string{tokens, numbers}[order%2]
		inWorld(t, 5, func(t *testing.T, w *timeline) {
			var proxies []*Locker
			for i := range 3 {
				l, links := w.connect(fmt.Sprint("p", i), timelineConfig())
				w.locker, w.others, proxies = l, append(w.others, l), append(proxies, l)
				for _, k := range links {
					k.SetDelay(time.Duration(random.IntN(20))*time.Millisecond, 0)
				}
			}
			for _, m := range w.masters {
				m.Put(key, values[0], 0)
			}
			racing := w.crew()
			winners, won := 0, 0
			for i, l := range proxies {
				racing.Go(func() {
					o := l.Run(t.Context(), RunRequest{Keys: [][]byte{[]byte(key)}, Args: bytesOf([]string{"GETSET", key, values[i+1]})})
					told, _ := resp.ParseBulk(o.Reply)
					switch {
					case o.Verdict != Won:
						return
					case string(told) == values[0]:
						winners++
					case !slices.Contains(values[1:], string(told)) || string(told) == values[i+1]:
						t.Errorf("order %d: a loser was told %q", order, told)
					}
					won++
				})
			}
			racing.Wait()
			if winners > 1 {
				t.Errorf("order %d: %d winners", order, winners)
			}
			w.elapse(10 * second)
			if o := w.locker.Get(t.Context(), 0, []byte(key)); values == numbers && (o.Verdict != Won || won > 0 && string(o.Value) == values[0]) {
				t.Errorf("order %d: %v %q, and %d swaps were won", order, o.Verdict, o.Value, won)
			}
		})
	}
}

// Two clients acquire a lock while a third deletes whatever it finds, each through a proxy of its own and
// at any moment. If the third hears that there was no lock, it has deleted none, so only one has it.
func TestTimelineDeletionsBesideAcquires(t *testing.T) {
	const rounds = 1500
	random := rand.New(rand.NewPCG(1, 1))
	short := func() time.Duration { return time.Duration(random.Int64N(int64(20 * time.Millisecond))) }
	found, missed, acquired := 0, 0, 0
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		b, ofB := w.connect("b", timelineConfig())
		c, ofC := w.connect("c", timelineConfig())
		w.others = append(w.others, b, c)
		for round := range rounds {
			name := fmt.Sprint("lock:", round)
			lock := bytesOf([]string{name})
			for i, links := range [][]*toymaster.Link{w.links, ofB, ofC} {
				for _, k := range links {
					k.SetDelay(short()/[]time.Duration{10, 1, 1}[i], 0) // a deletion asks three times
				}
			}
			r := []RunRequest{
				{Args: bytesOf([]string{"EVAL", deleteAnyway, "1", name})},
				{Transaction: [][][]byte{bytesOf([]string{"EVAL", deleteAnyway, "1", name})}},
				{Args: bytesOf([]string{"PEXPIRE", name, "0", "LT"}), Deletes: lock},
			}[random.IntN(3)]
			r.Keys = lock
			all := w.crew()
			var deleted, byB, byC Outcome
			after := func(wait time.Duration, do func()) { all.Go(func() { w.sleep(wait); do() }) }
			acquire := func(l *Locker, value string) Outcome {
				return l.Acquire(context.Background(), AcquireRequest{Key: lock[0], Value: []byte(value), TTL: time.Minute})
			}
			after(short(), func() { deleted = w.locker.Run(context.Background(), r) })
			after(short(), func() { byB = acquire(b, tokenB) })
			after(2*short(), func() { byC = acquire(c, tokenC) })
			all.Wait()
			none := deleted.Verdict == Won && strings.HasSuffix(string(deleted.Reply), ":0\r\n")
			if none && byB.Verdict == Won && byC.Verdict == Won {
				t.Errorf("round %d: two clients hold the lock, and nobody has deleted it", round)
			}
			switch {
			case none:
				missed++
			case deleted.Verdict == Won:
				found++
			}
			if byB.Verdict == Won || byC.Verdict == Won {
				acquired++
			}
			w.elapse(200 * time.Millisecond)
		}
	})
	t.Logf("%d deletions, %d found no lock, %d locks", found, missed, acquired)
	if found < rounds/100 || missed < rounds/10 || acquired < rounds/2 {
		t.Errorf("too little happened: %d deletions, %d found no lock, %d locks", found, missed, acquired)
	}
}

func TestTimelineRequestsReachAllMastersInOneOrder(t *testing.T) {
	// With one constant value, a release that comes before an acquire on some
	// masters and behind it on others deletes votes that were counted.
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for round := range 20 {
			asking := w.crew()
			for i := range 100 {
				asking.Go(func() {
					w.locker.releaseValue(0, []byte(key), fmt.Appendf(nil, "%d.%d", round, i), &stream.Lifetime{}, stream.AnyLifetime)
				})
			}
			asking.Wait()
		}
		first := w.order(0)
		for i := range w.masters {
			if !slices.Equal(w.order(i), first) {
				t.Errorf("master %d was asked in another order than master 1", i+1)
			}
		}
	})
}

// order returns the commands about the key that a master got, in order.
func (w *timeline) order(master int) []string {
	var words []string
	for _, x := range w.executions() {
		if x.Master == w.masters[master].Name && len(x.Args) > 4 && string(x.Args[3]) == key {
			words = append(words, string(x.Args[4]))
		}
	}
	return words
}

// Clients of several processes ask at the same moment, for locks in several databases.
func TestTimelineNoTokenIsGivenTwice(t *testing.T) {
	onTimeline(t, "ok ok@2ms ok@3ms ok@4ms ok@5ms", func(t *testing.T, w *timeline) {
		lockers := []*Locker{w.locker, w.another(timelineConfig()), w.another(timelineConfig())}
		w.settle()
		for db := range 2 {
			if v := acquireIn(t, w.locker, db, tokenA); v != Won {
				t.Fatal(v)
			}
		}
		clients := w.crew()
		given, largest := map[int64]bool{}, int64(0)
		for n := range 9 {
			clients.Go(func() {
				for range 10 {
					before := largest
					o := tokenOf(t, lockers[n%3], n%2, tokenA)
					if o.Verdict != Won || given[o.Number] || o.Number <= before {
						t.Errorf("after %d: %+v, given twice: %v", before, o, given[o.Number])
					}
					given[o.Number], largest = true, max(largest, o.Number)
				}
			})
		}
		clients.Wait()
	})
}

// Clients of two processes lock all the time while three masters become four, and three again. Each
// request that a step overtakes is tried again, and those that come then wait until votes count.
func TestTimelineNoRequestIsRefusedWhileTheNumberChanges(t *testing.T) {
	cfg := timelineConfig()
	cfg.RestartDelay, cfg.MaxQuarantine = 2*second, 4*second
	onTimelineWith(t, cfg, "ok ok ok", func(t *testing.T, w *timeline) {
		both := []*Locker{w.locker, w.another(cfg)}
		w.settle()
		ctx, stop := context.WithCancel(t.Context())
		working := w.crew()
		asked := 0
		check := func(what string, o Outcome) {
			if asked++; o.Verdict == NoQuorum || o.Verdict == Lost && what != "acquire" {
				t.Errorf("%s: %v, overtaken: %v, %s", what, o.Verdict, o.Overtaken, o.NoQuorumError())
			}
		}
		for i := range 6 {
			l, kept := both[i%2], []byte(fmt.Sprintf("kept %d", i))
			check("keep", l.Acquire(t.Context(), AcquireRequest{Key: kept, Value: []byte(tokenA), TTL: 10 * second}))
			pause := time.Duration(7+2*i) * time.Millisecond
			working.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					token := fmt.Sprintf("the token of client %d in turn %d", i, n)
					o := l.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(token), TTL: 2 * second})
					check("acquire", o)
					if o.Verdict == Won {
						check("release", l.Release(t.Context(), ReleaseRequest{Key: []byte(key), Value: []byte(token)}))
					}
					w.sleep(pause)
				}
			})
			working.Go(func() {
				for ctx.Err() == nil {
					own := []byte(fmt.Sprintf("own %d", i))
					if o := l.Acquire(t.Context(), AcquireRequest{Key: own, Value: []byte(tokenB), TTL: 2 * second}); o.Verdict == Won {
						// One that a step meets may be refused, because its first look shows too little.
						if o = l.Release(t.Context(), ReleaseRequest{Key: own}); o.Verdict == NoQuorum && !o.Overtaken {
							t.Errorf("a plain DEL: %s", o.NoQuorumError())
						}
					}
					w.sleep(pause)
				}
			})
			working.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					switch n % 3 {
					case 0:
						check("extend", l.Extend(t.Context(), ExtendRequest{Key: kept, TTL: 10 * second}))
					case 1:
						check("get", l.Get(t.Context(), 0, kept))
					case 2:
						check("token", l.Token(t.Context(), TokenRequest{Key: kept, Value: []byte(tokenA)}))
					}
					w.sleep(pause)
				}
			})
		}
		first := slices.Clone(w.locker.settings().Masters)
		others := slices.Clone(both[1].settings().Masters)
		added := w.joining("m4")
		first, others = append(first, added), append(others, added)
		for _, n := range []int{4, 3} {
			for i, masters := range [][]Master{first, others} {
				if err := both[i].Reload(t.Context(), withFirst(masters, n)); err != nil {
					t.Fatal(err)
				}
			}
			for wait := 0; ; wait++ {
				one, other := both[0].Status(), both[1].Status()
				if len(one.Masters) == n && len(other.Masters) == n && one.Ready() && other.Ready() && time.Now().After(one.NextChange) {
					break
				}
				if wait == 120 {
					t.Fatalf("never %d masters: %+v", n, one)
				}
				w.sleep(time.Second)
			}
		}
		stop()
		working.Wait()
		t.Logf("%d requests", asked)
	})
}

// withFirst is a configuration with short limits and the first n of some masters.
func withFirst(masters []Master, n int) Config {
	cfg := timelineConfig()
	cfg.RestartDelay, cfg.MaxQuarantine, cfg.Masters = 2*second, 4*second, slices.Clone(masters[:n])
	return cfg
}
