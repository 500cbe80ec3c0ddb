package redlock

import (
	"cmp"
	"context"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// ExtendRequest changes a key's TTL: the EXPIRE family and PERSIST.
type ExtendRequest struct {
	DB        int
	Key       []byte
	TTL       time.Duration // above 0, whole milliseconds; 0 with Persist
	Persist   bool          // remove the TTL
	Condition string        // "", NX, XX, GT or LT; the masters check it
}

// command is what a master does. Its reply is 1 if it changed the TTL.
func (r ExtendRequest) command() [][]byte {
	ttl := resp.Decimal(r.TTL.Milliseconds())
	switch {
	case r.Persist:
		return [][]byte{[]byte("PERSIST"), r.Key}
	case r.Condition != "":
		return [][]byte{[]byte("PEXPIRE"), r.Key, ttl, []byte(r.Condition)}
	}
	return [][]byte{[]byte("PEXPIRE"), r.Key, ttl}
}

// extension is what one master did.
type extension struct {
	of      reading // what the key holds there
	endless bool    // it had no TTL
	changed bool    // it changed the TTL
	refusal string  // the command's error reply
}

func (e extension) equal(f extension) bool {
	return e.changed == f.changed && e.refusal == f.refusal && e.of.equal(f.of)
}

func (e extension) granted() bool { return e.changed }

// Extend changes a key's TTL. It is won if a quorum changed the TTL of one and the same
// value and some validity is left. A changed TTL is never undone, because that would
// break a newer extension. Masters that were away get the new expiry by value when they
// are back. If the masters changed during an extension, it is tried again, for the rest
// of the TTL.
func (l *Locker) Extend(ctx context.Context, r ExtendRequest) Outcome {
	key := string(r.Key) // debts outlive the call
	// An extension goes before those that wait, but not in the middle of another
	// request. Votes that the other one is about to lose would count for this one.
	turn, err := l.lanes.Enter(ctx, r.DB,
		// rule: an extension takes its turn
		[]string{key}, lane.Queueing{Next: true})
	if err != nil {
		return ballot.Abandoned()
	}
	defer turn.Leave()
	o := l.extendOnce(ctx, r, key)
	began, ttl := o.Since, r.TTL
	for try := 0; o.Overtaken && r.Condition == "" && !r.Persist && l.settings().Retry.May(try, o); try++ {
		l.masters.Prepare(r.DB, ctx.Done()) // this takes time, too
		if r.TTL = (ttl - time.Since(began)).Truncate(time.Millisecond); r.TTL <= 0 || ctx.Err() != nil {
			break
		}
		o = l.extendOnce(ctx, r, key)
	}
	return o
}

func (l *Locker) extendOnce(ctx context.Context, r ExtendRequest, key string) Outcome {
	frames := resp.AppendCommand(resp.AppendCommand(nil, []byte("GET"), r.Key), []byte("PTTL"), r.Key)
	frames = resp.AppendCommand(frames, r.command()...)
	b := ballot.Poll(l.box, frames, ballot.Question[extension]{
		Kind: KindExtend,
		DB:   r.DB,
		Left: ctx.Done(),
		Keys: []string{key},
		// rule: an extension asks no master that owes a vote
		Creates: true,
		TTL:     l.masters.Covered(r.TTL),
		Gives:   r.TTL,
		Replies: 3,
		Parse: func(replies [][]byte) (extension, error) {
			v, err := parseReading(replies)
			left, _ := resp.ParseInteger(replies[1])
			if resp.IsError(replies[2]) {
				return extension{refusal: resp.ErrorText(replies[2])}, ballot.ReadAs(replies[2], true)
			}
			n, ok := resp.ParseInteger(replies[2])
			return extension{of: v, endless: left == effect.NoExpiry, changed: n == 1}, cmp.Or(err, ballot.ReadAs(replies[2], ok))
		},
		Vote: func(e extension) Vote { return ballot.VoteOf(e.changed) },
		Decide: func(answers []quorum.Answer[extension], _ time.Duration) Verdict {
			if _, t := quorum.Largest(answers, extension.answeredWithError, extension.equal); t.Agree() == Won {
				return Lost
			}
			_, t := quorum.Largest(answers, extension.granted, extension.equal)
			return t.Agree()
		},
		Settler: ballot.SettleFunc[extension](func(b *ballot.Ballot[extension], i int, a quorum.Answer[extension], verdict Verdict) {
			if verdict == Won {
				l.extendMissed(b, i, a, r)
			}
		}),
	})
	o := b.Outcome()
	if e, t := quorum.Largest(b.Answers, extension.answeredWithError, extension.equal); o.Verdict == Lost && t.Agree() == Won {
		o.Err = e.refusal
	}
	return o
}

// answeredWithError tells whether the command failed. An old server does not know the
// conditions, for example.
func (e extension) answeredWithError() bool { return e.refusal != "" }

// extendMissed queues the new expiry for a master that missed it. Otherwise a lock that
// was taken without TTL would stay there for ever.
func (l *Locker) extendMissed(b *ballot.Ballot[extension], i int, a quorum.Answer[extension], r ExtendRequest) {
	if !a.State.Failed() || r.Persist {
		return
	}
	e, _ := quorum.Largest(b.Answers, extension.granted, extension.equal)
	if e.of.value == nil {
		return
	}
	end := b.Started.Add(r.TTL)
	l.masters.At(i).Stream(r.DB).Deliver(&stream.Debt{Script: stream.ExpireScript, Key: b.Keys[0], Value: string(e.of.value), Ttl: end, Endless: e.endless}, time.Now(), true)
}

// RenewRequest asks for the extension of a lock for its holder. Its caller knows what the holder
// stored.
type RenewRequest struct {
	DB     int
	Key    []byte
	Holder []byte        // the value of a string
	Hash   bool          // the lock is a hash, as re-entrant locks are, and Holder one of its fields
	TTL    time.Duration // above 0, whole milliseconds
}

// Renew extends a lock for its holder. One ballot asks every master for this, in one script: if the
// lock is the holder's, give it at least the TTL. The count in a holder's field does not matter: a
// master that missed a re-entrance has the same holder. It creates nothing and takes nothing back,
// and a master that missed it does not get it later. So it cannot bring back a lock that has ended,
// nor extend another client's. Lost: Number is the number of masters that still have the lock.
func (l *Locker) Renew(ctx context.Context, r RenewRequest) Outcome {
	// It goes before those that wait, but not in the middle of another request. Votes that
	// the other one is about to lose would count for this one.
	turn, err := l.lanes.Enter(ctx, r.DB, []string{string(r.Key)}, lane.Queueing{Next: true})
	if err != nil {
		return ballot.Abandoned()
	}
	defer turn.Leave()
	kind := "string"
	if r.Hash {
		kind = "hash"
	}
	frames := resp.AppendEval(nil, renewScript, [][]byte{r.Key}, r.Holder, resp.Decimal(r.TTL.Milliseconds()), []byte(kind))
	b := ballot.Poll(l.box, frames, ballot.Question[bool]{
		Kind:    KindExtend,
		DB:      r.DB,
		Keys:    []string{string(r.Key)},
		Creates: true,
		TTL:     l.masters.Covered(r.TTL),
		Gives:   r.TTL,
		Replies: 1,
		Parse:   ballot.ParseDone,
		Vote:    ballot.VoteOf,
		Decide:  ballot.Tallied(quorum.Tally.Agree),
	})
	o := b.Outcome()
	if o.Verdict == Lost {
		for _, a := range b.Answers {
			if a.State.Heard() && a.Value {
				o.Number++
			}
		}
	}
	return o
}
