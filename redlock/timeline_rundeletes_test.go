package redlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/toymaster"
)

// A deletion that does not look whose lock it is must not delete votes. Otherwise two clients could
// hold the lock: B has the votes of two masters when A deletes. C gets these two votes and a third,
// and B gets the vote of another master.
func TestTimelineADeletionThatLooksAtNothingDeletesNoVotes(t *testing.T) {
	lock := bytesOf([]string{key})
	for name, r := range map[string]RunRequest{
		"a script":            {Args: bytesOf([]string{"EVAL", deleteAnyway, "1", key})},
		"a script in MULTI":   {Transaction: [][][]byte{bytesOf([]string{"EVAL", deleteAnyway, "1", key})}},
		"a time that is over": {Args: bytesOf([]string{"PEXPIRE", key, "0", "XX"}), Deletes: lock},
		"the same in MULTI":   {Transaction: [][][]byte{bytesOf([]string{"PEXPIRE", key, "0", "XX"})}, Deletes: lock},
	} {
		t.Run(name, func(t *testing.T) {
			// The answers of the first two masters come late, and the undos that follow them.
			onTimeline(t, "ok@20ms ok@20ms ok ok ok", func(t *testing.T, w *timeline) {
				r.Keys = lock
				b, links := w.connect("b", timelineConfig())
				c, others := w.connect("c", timelineConfig())
				w.others = append(w.others, b, c)
				links[2].SetDelay(15*time.Millisecond, 0)
				links[3].Mute()
				links[4].Mute()
				others[2].Mute()
				others[4].Mute()
				acquire := func(l *Locker, value string) (wait func() Outcome) {
					return begin(w, func() Outcome {
						return l.Acquire(context.Background(), AcquireRequest{Key: []byte(key), Value: []byte(value), TTL: time.Minute})
					})
				}
				byB := acquire(b, tokenB)
				w.elapse(time.Millisecond)
				w.wantValues("B B - - -")
				w.crew().Go(func() { w.locker.Run(context.Background(), r) })
				w.elapse(2 * time.Millisecond)
				byC := acquire(c, tokenC)
				if o, p := byB(), byC(); o.Verdict == Won && p.Verdict == Won {
					t.Error("two clients hold the lock")
				}
				w.elapse(0)
			})
		})
	}
}

// A quorum of guards says that keys have changed. Then a late guard is not followed by the transaction.
func TestTimelineATransactionDoesNotFollowALateGuardIfItWasAborted(t *testing.T) {
	onTimeline(t, "ok ok ok ok@20ms ok@20ms", func(t *testing.T, w *timeline) {
		lock := bytesOf([]string{key})
		w.put("A A A A A", time.Minute)
		watch, _ := w.locker.Watch(context.Background(), 0, lock)
		w.elapse(0)
		w.put("B B B - -", time.Minute)
		o := w.locker.Run(context.Background(), RunRequest{Keys: lock, Transaction: [][][]byte{bytesOf([]string{"DEL", key})}, Watches: []*Watch{watch}})
		wantReply(t, o, "*-1\r\n")
		w.elapse(0)
		for i := range w.masters {
			if n := w.countHeard(i, "DEL"); n > 0 {
				t.Errorf("master %d got the DEL", i+1)
			}
		}
	})
}

// A master whose copy differs does not get the deletion of a hash. No other request may ever find that
// copy, so it is mended at once.
func TestRunACollectionThatWasDeletedElsewhereIsMended(t *testing.T) {
	s := startQuickMendingSet(t)
	for i, m := range s.masters {
		m.must("HSET", "lock", "me", []string{"1", "1", "2"}[i])
	}
	wantReply(t, s.run([]string{"lock"}, "EVAL", deleteAnyway, "1", "lock"), ":1\r\n")
	s.eventuallyGone("lock")
}

// A master whose copy changes between WATCH and EXEC does not get the deletion, which a quorum makes.
func TestRunACopyThatChangedBeforeATransactionDeletedTheOthersIsMended(t *testing.T) {
	s := startQuickMendingSet(t)
	s.all([]string{"SET", "lock", "a value", "PX", "600000"})
	watch := s.watch("lock")
	s.awaitIdle() // all masters have shown their copies
	s.masters[2].must("SET", "lock", "another value")
	wantReply(t, s.deleteIfUnchanged("lock", watch), "*1\r\n:1\r\n")
	s.eventuallyGone("lock")
}

// startQuickMendingSet is startLiveSet of three masters with a short timeout, so that copies are quiet
// soon.
func startQuickMendingSet(t *testing.T) *liveSet {
	s := startLiveSet(t, 3)
	cfg := *s.settings()
	cfg.MasterTimeout = second
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	s.Locker = l
	s.awaitVotes()
	return s
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
