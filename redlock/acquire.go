package redlock

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// AcquireRequest asks for a lock that nobody holds: SET NX, SETNX.
type AcquireRequest struct {
	DB    int
	Key   []byte
	Value []byte        // the holder's token
	TTL   time.Duration // whole milliseconds; 0: the lock never expires by itself
	Get   bool          // report the holder's value when the lock is taken
}

// Acquire takes the lock on a quorum of masters, or on none. Won means it is
// held for a validity above zero. Lost means somebody holds it, or that the
// votes were split to the last try; with Get, Value is the holder's.
// ctx ends when the client has gone: what it won then is given back.
func (l *Locker) Acquire(ctx context.Context, r AcquireRequest) Outcome {
	a := acquisition{db: r.DB, key: string(r.Key), value: string(r.Value), ttl: r.TTL}
	if r.TTL > 0 && l.validity(r.TTL, 0) <= 0 {
		return l.acquireInVain(ctx, r)
	}
	for try := 0; ; try++ {
		o, granted, again, err := l.acquireInTurn(ctx, a, !r.Get)
		if err != nil {
			return Outcome{Verdict: Lost}
		}
		if o.Verdict == Lost && r.Get {
			held, split := l.getOrChoose(ctx, r.DB, r.Key)
			if split && bytes.Equal(held.Value, r.Value) {
				held.Verdict = NoQuorum // its own, which is being taken back
			}
			if held.Verdict == Won {
				o.Value, o.Err = held.Value, held.Err
				return o
			}
			// Nil would say that the lock was taken.
			if held.Verdict == NoQuorum || try >= l.settings().Retry.Count {
				held.Verdict = NoQuorum
				return held
			}
		} else if again && try < l.settings().Retry.Count {
			continue // hold waits for those that were spared, where it needs them
		} else if o.Verdict != Lost || granted == 0 {
			return o
		} else if try >= l.settings().Retry.Count {
			l.mend(r.DB, a.key)
			return o
		} else if _, held := l.get(r.DB, r.Key); held.Verdict == Won {
			return o // a bare majority holds it, so nothing was split
		}
		select {
		case <-time.After(rand.N(l.settings().Retry.Delay + 1)):
		case <-ctx.Done():
			return Outcome{Verdict: Lost}
		}
	}
}

// acquireInTurn holds one acquire ballot when it is its turn, and tells how many
// masters granted. One that is answered by another's while it waits holds none.
// Again: it was not decided because a master failed, and others were spared that
// may make up for it. An error is ctx's.
func (l *Locker) acquireInTurn(ctx context.Context, a acquisition, shares bool) (o Outcome, granted int, again bool, err error) {
	turn, answer, err := l.turns.takeOrBeAnswered(ctx, a.db, a.key, shares)
	switch {
	case err != nil:
		return o, 0, false, err
	case answer != nil:
		return *answer, 0, false, nil
	}
	defer turn.pass()
	turn.send()
	b := l.acquireOnce(ctx, a)
	o, granted = b.outcome(), quorum.Count(b.answers, isGranted).Granted
	switch {
	case o.Verdict == Lost && granted == 0:
		turn.refuse()
	case o.Verdict == NoQuorum && l.isHopeless(a.db):
		turn.giveUp(o)
	default:
		again = o.Verdict == NoQuorum && b.spared
	}
	return o, granted, again, nil
}

// acquireInVain answers for a lock that would have ended before anybody heard of
// it: it is refused, and no master is asked for it.
func (l *Locker) acquireInVain(ctx context.Context, r AcquireRequest) Outcome {
	if !r.Get {
		return Outcome{Verdict: Lost}
	}
	held := l.Get(ctx, r.DB, r.Key)
	if held.Verdict == Won {
		held.Verdict = Lost
	}
	return held
}

func isGranted(granted bool) bool { return granted }

// An acquisition is what an AcquireRequest asks for. Its undos outlive the
// request, whose memory is the caller's.
type acquisition struct {
	db         int
	key, value string
	ttl        time.Duration // 0: none
}

// acquireOnce holds one acquire ballot and, if it is not won, queues the undo
// of every grant before it returns.
func (l *Locker) acquireOnce(ctx context.Context, r acquisition) *ballot[bool] {
	ttl := r.ttl
	if ttl == 0 {
		// Until it is won, so that stray copies do not live for ever.
		ttl = l.settings().RestartDelay
	}
	var room [usualFrames]byte
	frames := resp.AppendCommand(room[:0], "SET", r.key, r.value, "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
	b := hold(l, frames, question[bool]{
		kind:    KindAcquire,
		db:      r.db,
		replies: 1,
		keys:    []string{r.key},
		creates: true,
		lives:   l.covered(r.ttl),

		keep: func(*ballot[bool]) bool {
			return ctx.Err() == nil && (r.ttl != 0 || l.makePermanent(r) == Won)
		},
		parse: parseSet,
		vote:  voteOf,
		decide: func(answers []quorum.Answer[bool], elapsed time.Duration) Verdict {
			return l.inTime(quorum.Count(answers, isGranted).Acquire(), ttl, elapsed)
		},
		late: func(_ *ballot[bool], i int, a quorum.Answer[bool], verdict Verdict) {
			if verdict != Won {
				l.takeBack(i, a, r)
			}
		},
	})
	if b.verdict != Won {
		for i, a := range b.answers {
			l.takeBack(i, a, r)
		}
	}
	return b
}

func parseSet(replies [][]byte) (granted bool, err error) {
	granted = resp.IsOK(replies[0])
	return granted, ownAs(replies[0], granted || resp.IsNil(replies[0]))
}

func voteOf(granted bool) Vote {
	if granted {
		return Granted
	}
	return Refused
}

// takeBack undoes what a master granted to a request that was not won. A
// grant that is only possible, because the connection broke, is taken back on
// the next connection and only by a value that is surely this client's own.
func (l *Locker) takeBack(i int, a quorum.Answer[bool], r acquisition) {
	maybe := a.State == quorum.Unknown && len(r.value) >= stream.ShortValue
	if !maybe && !(a.State.Heard() && a.Value) {
		return
	}
	m := l.masters[i]
	now := time.Now()
	d := &stream.Debt{Script: releaseScript.text, Key: r.key, Value: r.value, Blind: maybe}
	if r.ttl > 0 {
		d.Life = stream.NewLifetime(now.Add(r.ttl))
	}
	m.stream(r.db).Deliver(d, now, maybe)
	l.undone(i, a.State)
}

// undone tells of a grant that is taken back. One that did not count, for its
// master may not vote, is taken back as a matter of course.
func (l *Locker) undone(master int, state quorum.State) {
	if state != quorum.Discounted {
		l.observer.Undone(l.masters[master].name())
	}
}

// makePermanent takes the provisional TTL off a lock that was won.
func (l *Locker) makePermanent(r acquisition) Verdict {
	frames := persistScript.append(nil, [][]byte{[]byte(r.key)}, []byte(r.value))
	b := hold(l, frames, question[bool]{
		kind:    KindExtend,
		db:      r.db,
		keys:    []string{r.key},
		replies: 1,
		parse:   parseDone,
		vote:    voteOf,
		decide: func(answers []quorum.Answer[bool], elapsed time.Duration) Verdict {
			return l.inTime(quorum.Count(answers, isGranted).Acquire(), l.settings().RestartDelay, elapsed)
		},
	})
	return b.verdict
}

// parseDone reads the reply of a script that answers 1 when it did its work.
// The key being of another type is a plain refusal.
func parseDone(replies [][]byte) (done bool, err error) {
	n, ok := resp.ParseInteger(replies[0])
	return n > 0, ownAs(replies[0], ok)
}

// inTime is the verdict on what has this TTL: won too late to rely on, it is lost.
func (l *Locker) inTime(v Verdict, ttl, elapsed time.Duration) Verdict {
	if v == Won && l.validity(ttl, elapsed) <= 0 {
		return Lost
	}
	return v
}

// validity is how long a lock of this TTL may still be relied on: what the
// published algorithm calls MIN_VALIDITY, with 2 ms for Redis's own precision.
func (l *Locker) validity(ttl, elapsed time.Duration) time.Duration {
	return ttl - elapsed - time.Duration(float64(ttl)*l.settings().ClockDrift) - 2*time.Millisecond
}
