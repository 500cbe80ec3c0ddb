package redlock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/stream"
)

// Turns, order on a stream, and what comes first on its successor.

func (w *timeline) acquireKey(name, value string) Outcome {
	return w.locker.Acquire(context.Background(), AcquireRequest{Key: []byte(name), Value: []byte(value), TTL: 10 * second})
}

func TestTimelineAcquiresOfOneKeyTakeTurns(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		clients := w.crew()
		began := time.Now()
		winners := 0
		for i := range 20 {
			clients.Go(func() {
				if w.acquireKey(key, fmt.Sprintf("the random token of client %d", i)).Verdict == Won {
					winners++
				}
			})
		}
		clients.Wait()
		if winners != 1 {
			t.Errorf("%d winners", winners)
		}
		values := map[string]time.Time{}
		for _, x := range w.executions() {
			if string(x.Args[0]) == "SET" {
				if at, seen := values[string(x.Args[2])]; seen && !at.Equal(x.At) {
					t.Errorf("one acquire was written at %v and %v", at, x.At)
				}
				values[string(x.Args[2])] = x.At
			}
		}
		moments := map[time.Time]bool{}
		for _, at := range values {
			moments[at] = true
		}
		// The third to the last share the second one's refusal.
		if len(values) != 2 || len(moments) != 2 {
			t.Errorf("%d acquires were written at %d moments", len(values), len(moments))
		}
		if took := time.Since(began); took != 2*9*time.Millisecond {
			t.Errorf("all was over after %v", took)
		}
	})
}

func TestTimelineAcquiresOfDifferentKeysDoNotWaitForEachOther(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		clients := w.crew()
		began := time.Now()
		for i := range 20 {
			clients.Go(func() { w.acquireKey(fmt.Sprintf("lock:%d", i), tokenA) })
		}
		clients.Wait()
		if took := time.Since(began); took != 9*time.Millisecond {
			t.Errorf("all was over after %v", took)
		}
	})
}

func TestTimelineAReleaseIsNotHeldBack(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 10*second)
		w.play("ok@1ms ok@1ms pause pause pause")
		w.crew().Go(func() { w.acquireKey(key, tokenB) }) // has the turn for 50 ms
		w.sleep(5 * time.Millisecond)
		for _, i := range []int{2, 3, 4} {
			w.masters[i].Resume()
		}
		w.play("ok ok ok@1ms ok@1ms ok@1ms")
		if o, took := w.release(); o.Verdict != Won || took > 10*time.Millisecond {
			t.Errorf("%v after %v", o.Verdict, took)
		}
		w.elapse(0)
	})
}

func TestTimelineAMasterThatOwesAVoteOnAKeyIsNotAskedForItAgain(t *testing.T) {
	onTimeline(t, "no@1ms no@1ms no@1ms ok@30ms ok@30ms", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, Lost, time.Millisecond)
		for i := range 3 {
			w.masters[i].Remove(key)
		}
		// Another try with the same token, as clients do in their own loop.
		w.mustAcquire(tokenA, 10*second)
		if o := w.acquireKey("lock:else", tokenA); o.Verdict != Won {
			t.Errorf("another key: %v", o.Verdict)
		}
		w.elapse(0)
		w.wantValues("A A A - -")
		w.wantHeard(3, "SET, SET, release.lua")
		if w.heardValue(3, "SET "+key, tokenA) != 1 {
			t.Errorf("it was asked again")
		}
	})
}

func TestTimelineASuspendedMasterIsSkippedByAcquiresAndGetsItsReleases(t *testing.T) {
	onTimeline(t, "ok ok ok ok pause", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 10*second)
		w.elapse(timeout)
		if o := w.acquireKey("lock:else", tokenB); o.Verdict != Won {
			t.Errorf("%v", o.Verdict)
		}
		if up := w.locker.reachable(); up != 4 {
			t.Errorf("%d masters are reachable", up)
		}
		if o, _ := w.release(); o.Verdict != Won {
			t.Errorf("release: %v", o.Verdict)
		}
		w.wantHeard(4, "")
		w.masters[4].Resume()
		w.elapse(0)
		w.wantHeard(4, "SET, GETRANGE, PTTL, release.lua")
		w.wantValues("- - - - -")
		if up := w.locker.reachable(); up != 5 {
			t.Errorf("%d masters are reachable", up)
		}
	})
}

func TestTimelineTheSuccessorKillsItsPredecessorFirst(t *testing.T) {
	onTimeline(t, "ok ok pause pause pause", func(t *testing.T, w *timeline) {
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != NoQuorum {
			t.Fatal(o.Verdict)
		}
		// The SETs are in the buffers of stopped masters when the connections
		// break. When they go on, they serve the new connections first.
		for _, i := range []int{2, 3, 4} {
			w.links[i].Cut()
		}
		w.elapse(10 * time.Millisecond)
		for _, i := range []int{2, 3, 4} {
			w.masters[i].ResumeNewestFirst(20 * time.Millisecond)
		}
		w.elapse(0)
		w.wantValues("- - - - -")
		w.wantHeard(4, "CLIENT KILL, release.lua")
	})
}

func TestTimelineAKillThatWasNotHeardIsRepeated(t *testing.T) {
	onTimeline(t, "ok ok pause no no", func(t *testing.T, w *timeline) {
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.links[2].Cut()
		w.elapse(10 * time.Millisecond)
		// The second connection breaks with the KILL of the first under way.
		w.links[2].LoseQuestion(time.Millisecond)
		w.masters[2].ResumeNewestFirst(50 * time.Millisecond)
		w.elapse(0)
		w.elapse(0)
		w.wantValues("- - - X X")
		if w.heardValue(2, "SET", tokenA) != 0 {
			t.Errorf("a connection two before was not killed: %s", w.heard(2))
		}
	})
}

func TestTimelineAnotherRunOfTheServerIsNotToldToKill(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.masters[4].Kill()
		w.masters[4].Restart(true)
		w.elapse(5 * second)
		w.mustAcquire(tokenA, 10*second)
		w.elapse(0)
		w.wantHeard(4, "SET")
	})
}

func TestTimelineDebtsComeBeforeNewCalls(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 10*second)
		w.elapse(0)
		w.links[4].SetDelay(10*time.Millisecond, 0) // so that dialling takes its time
		w.links[4].LoseQuestion(time.Millisecond)
		if o, _ := w.release(); o.Verdict != Won {
			t.Fatalf("release: %v", o.Verdict)
		}
		w.elapse(5 * time.Millisecond)
		w.mustAcquire(tokenB, 10*second)
		w.elapse(0)
		w.wantValues("B B B B B")
		w.wantHeard(4, "SET, CLIENT KILL, release.lua, SET")
	})
}

func TestTimelineAConnectionThatStaysSilentIsDialledAnew(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.links[4].Abandon()
		for range 60 {
			w.mustAcquire(tokenA, 10*second)
			w.elapse(0)
			if o, _ := w.release(); o.Verdict != Won {
				t.Fatalf("release: %v", o.Verdict)
			}
		}
		if up := w.locker.reachable(); up != 5 {
			t.Errorf("after 6 s %d masters are reachable", up)
		}
	})
}

func TestTimelineADeadMasterIsRedialledOffTheClientsPath(t *testing.T) {
	onTimeline(t, "ok ok ok ok kill", func(t *testing.T, w *timeline) {
		for range 10 {
			began := time.Now()
			w.mustAcquire(tokenA, 10*second)
			if took := time.Since(began); took != time.Millisecond {
				t.Errorf("took %v", took)
			}
			w.release()
			w.elapse(second)
		}
		w.masters[4].Restart(true)
		w.elapse(3 * second)
		if up := w.locker.reachable(); up != 5 {
			t.Errorf("%d masters are reachable", up)
		}
	})
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
