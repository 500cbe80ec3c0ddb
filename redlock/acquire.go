package redlock

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
	"redlock-proxy/redlock/token"
)

// AcquireRequest asks for a lock that nobody holds: SET NX, SETNX.
type AcquireRequest struct {
	DB    int
	Key   []byte
	Value []byte        // the holder's token
	TTL   time.Duration // whole milliseconds; 0: the lock never expires by itself
	Get   bool          // return the holder's value if somebody holds the lock
}

// Acquire takes the lock on a quorum of masters, or on none. Won: the client holds it,
// with a validity above zero. Lost: somebody holds it, or the votes were split to the
// last try; with Get, Value is the holder's. ctx must end when the client has gone. A lock
// that is won after that is given back, and the outcome is that of a client that has gone.
func (l *Locker) Acquire(ctx context.Context, r AcquireRequest) Outcome {
	key, value := ballot.Copies(r.Key, r.Value)
	task := loop.FromContext(ctx)
	a := &acquisition{locker: l, ctx: ctx, task: task, db: r.DB, key: [1]string{key}, value: value, ttl: r.TTL}
	if r.TTL > 0 && l.box.Validity(r.TTL, 0) <= 0 {
		task.Leave()
		return l.acquireInVain(ctx, r)
	}
	for try := 0; ; try++ {
		o, granted, again, err := l.acquireInTurn(a, !r.Get)
		switch again = again && l.settings().Retry.May(try, o); {
		case err != nil, o.Verdict == Lost && granted > 0 && ctx.Err() != nil:
			return ballot.Abandoned() // nil would say that somebody holds the lock
		case !again && (o.Verdict != Lost || granted == 0 && !r.Get):
			return o
		}
		task.Leave() // all that follows may wait
		if o.Verdict == Lost && r.Get {
			held, split := l.getOrChoose(ctx, r.DB, r.Key)
			if split && bytes.Equal(held.Value, r.Value) {
				held.Verdict = NoQuorum // this request's own copies, which are being undone
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
		} else if again {
			continue // Poll waits where it needs those that were spared, or until votes count again
		} else if try >= l.settings().Retry.Count {
			l.mender.Mend(r.DB, a.key[0])
			return o
		} else if _, held := l.get(r.DB, r.Key); held.Verdict == Won {
			return o // a bare majority holds it, so nothing was split
		}
		tasks := l.masters.Loop()
		if tasks.Wait(tasks.Draw(l.settings().Retry.Delay+1), ctx.Done()) != loop.Late {
			return ballot.Abandoned()
		}
	}
}

// acquireInTurn waits for its turn, asks once, and returns the number of masters that
// granted. If another request's answer holds for it meanwhile, it asks nobody. again is
// true if it came to nothing because a master failed, and masters that were spared may
// make up for that. An error says that the client has gone.
func (l *Locker) acquireInTurn(a *acquisition, shares bool) (o Outcome, granted int, again bool, err error) {
	turn, err := l.lanes.Enter(a.ctx, a.db,
		// rule: acquires of one key take turns
		a.key[:], lane.Queueing{Acquires: true, Shares: shares})
	switch {
	case err != nil:
		return o, 0, false, err
	case turn.Answer != nil:
		return *turn.Answer, 0, false, nil
	}
	defer turn.Leave()
	b := a.askOnce()
	o, granted = b.Outcome(), quorum.Count(b.Answers, ballot.Yes).Granted
	switch {
	case o.Verdict == Lost && granted == 0:
		turn.Refuse(Outcome{Verdict: Lost})
	case o.Verdict == NoQuorum && !o.Overtaken && l.masters.Hopeless(a.db):
		// rule: nobody waits where nobody can vote
		turn.GiveUp(o)
	default:
		again = o.Verdict == NoQuorum && (b.Spared || o.Overtaken)
	}
	return o, granted, again, nil
}

// acquireInVain refuses a lock that would end before the client hears of it. No master
// is asked for it.
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

// An acquisition is an AcquireRequest in memory of its own, because undos outlive the
// request.
type acquisition struct {
	locker *Locker
	ctx    context.Context // ends when the client has gone
	task   *loop.Task      // ctx's
	db     int
	key    [1]string // a list, as lanes and questions take it
	value  string
	ttl    time.Duration // 0: none
}

// askOnce holds one acquire ballot. If the ballot is not won, askOnce queues the undo of
// every grant before it returns.
func (r *acquisition) askOnce() *ballot.Ballot[bool] {
	l, ttl := r.locker, r.ttl
	if ttl == 0 {
		// Provisional until the lock is won, so that stray copies do not live for ever.
		// rule: a lock without TTL has a provisional one until it is won
		ttl = l.settings().RestartDelay
	}
	var room [ballot.UsualFrames]byte
	var digits [20]byte
	frames := resp.AppendCommand(room[:0], "SET", r.key[0], r.value, "NX", "PX", string(strconv.AppendInt(digits[:0], ttl.Milliseconds(), 10)))
	return ballot.Poll(l.box, frames, ballot.Question[bool]{
		Kind:    KindAcquire,
		DB:      r.db,
		Left:    r.ctx.Done(),
		Replies: 1,
		Keys:    r.key[:],
		Creates: true,
		TTL:     l.masters.Covered(r.ttl),
		Gives:   ttl,
		Task:    r.task,
		Parse:   parseSet, Vote: ballot.VoteOf, Decide: isAcquired,
		Keeper: r, Settler: r,
	})
}

// Keep implements ballot.Keeper. A lock without TTL becomes permanent only now.
func (r *acquisition) Keep(*ballot.Ballot[bool]) bool {
	return r.ctx.Err() == nil && (r.ttl != 0 || r.makePermanent() == Won && r.ctx.Err() == nil)
}

// Settle implements ballot.Settler.
func (r *acquisition) Settle(_ *ballot.Ballot[bool], i int, a quorum.Answer[bool], verdict Verdict) {
	if verdict != Won {
		r.takeBack(i, a)
	}
}

func parseSet(replies [][]byte) (granted bool, err error) {
	granted = resp.IsOK(replies[0])
	return granted, ballot.OwnAs(replies[0], granted || resp.IsNil(replies[0]))
}

var isAcquired = ballot.Tallied(quorum.Tally.Acquire)

// takeBack undoes what a master granted to a request that was not won. If the connection
// broke, a grant is only possible. The next connection undoes it, and only by a value
// that is surely this client's own.
func (r *acquisition) takeBack(i int, a quorum.Answer[bool]) {
	maybe := a.State == quorum.Unknown && len(r.value) >= stream.ShortValue
	if !maybe && !(a.State.Heard() && a.Value) {
		return
	}
	now := time.Now()
	d := &stream.Debt{Script: stream.ReleaseScript, Key: r.key[0], Value: r.value, Blind: maybe}
	if r.ttl > 0 {
		d.Life = stream.NewLifetime(now.Add(r.ttl))
	}
	r.locker.masters.At(i).Stream(r.db).Deliver(d, now, maybe)
	r.locker.box.Undone(i, a.State)
}

// makePermanent removes the provisional TTL of a lock that was won.
func (r *acquisition) makePermanent() Verdict {
	frames := resp.AppendEval(nil, persistScript, [][]byte{[]byte(r.key[0])}, []byte(r.value))
	return ballot.Poll(r.locker.box, frames, ballot.Question[bool]{
		Kind:    KindExtend,
		DB:      r.db,
		Keys:    r.key[:],
		Replies: 1,
		Gives:   r.locker.settings().RestartDelay,
		Task:    r.task,
		Parse:   ballot.ParseDone, Vote: ballot.VoteOf, Decide: isAcquired,
	}).Verdict
}

// TokenRequest asks for a fencing token.
type TokenRequest = token.Request

// Token gives a fencing token to the holder of a lock. Won: Number is the token. Lost: the
// value does not hold the lock. Package token says what a token is.
func (l *Locker) Token(ctx context.Context, r TokenRequest) Outcome { return l.tokens.Give(ctx, r) }
