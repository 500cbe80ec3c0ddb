package redlock

import (
	"cmp"
	"context"
	"time"

	"redlock-proxy/redlock/ballot"
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
	// Value, if set, is the holder's token. Then only a lock with this value is extended,
	// and a lock that lives longer anyway, or for ever, stays as it is. Condition and
	// Persist do not apply. Masters that were away do not get the new expiry later.
	Value []byte
}

// command is what a master does. Its reply is 1 if the lock lives for the TTL at least.
func (r ExtendRequest) command() [][]byte {
	ttl := resp.Decimal(r.TTL.Milliseconds())
	switch {
	case r.Value != nil:
		return [][]byte{[]byte("EVAL"), []byte(renewScript), []byte("1"), r.Key, r.Value, ttl}
	case r.Persist:
		return [][]byte{[]byte("PERSIST"), r.Key}
	case r.Condition != "":
		return [][]byte{[]byte("PEXPIRE"), r.Key, ttl, []byte(r.Condition)}
	}
	return [][]byte{[]byte("PEXPIRE"), r.Key, ttl}
}

// readAs reads an error as that of a script of our own, or of a client's command.
func (r ExtendRequest) readAs(reply []byte, fits bool) error {
	if r.Value != nil {
		return ballot.OwnAs(reply, fits)
	}
	return ballot.ReadAs(reply, fits)
}

// extension is what one master did.
type extension struct {
	of      reading // what the key holds there
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
// are back. Lost: Number is the number of masters that did what was asked. With Value these
// still hold the lock.
func (l *Locker) Extend(ctx context.Context, r ExtendRequest) Outcome {
	key := string(r.Key) // debts outlive the call
	// An extension goes before those that wait, but not in the middle of another
	// request. Votes that the other one is about to lose would count for this one.
	turn, err := l.lanes.Enter(ctx, r.DB, []string{key}, lane.Queueing{Next: true})
	if err != nil {
		return Outcome{Verdict: Lost}
	}
	defer turn.Leave()
	frames := resp.AppendCommand(resp.AppendCommand(nil, []byte("GET"), r.Key), r.command()...)
	b := ballot.Poll(l.box, frames, ballot.Question[extension]{
		Kind:    KindExtend,
		DB:      r.DB,
		Keys:    []string{key},
		Creates: true,
		TTL:     l.masters.Covered(r.TTL),
		Gives:   r.TTL,
		Replies: 2,
		Parse: func(replies [][]byte) (extension, error) {
			v, err := parseReading(replies[0])
			if resp.IsError(replies[1]) {
				return extension{refusal: resp.ErrorText(replies[1])}, r.readAs(replies[1], true)
			}
			n, ok := resp.ParseInteger(replies[1])
			return extension{of: v, changed: n == 1}, cmp.Or(err, r.readAs(replies[1], ok))
		},
		Vote: func(e extension) Vote { return ballot.VoteOf(e.changed) },
		Decide: func(answers []quorum.Answer[extension], _ time.Duration) Verdict {
			if _, t := quorum.Largest(answers, extension.answeredWithError, extension.equal); t.Agree() == Won {
				return Lost
			}
			_, t := quorum.Largest(answers, extension.granted, extension.equal)
			return t.Agree()
		},
		Late: func(b *ballot.Ballot[extension], i int, a quorum.Answer[extension], verdict Verdict) {
			if verdict == Won {
				l.extendMissed(b, i, a, r)
			}
		},
	})
	o := b.Outcome()
	switch o.Verdict {
	case Won:
		for i, a := range b.Answers {
			l.extendMissed(b, i, a, r)
		}
	case Lost:
		for _, a := range b.Answers {
			if a.State.Heard() && a.Value.changed {
				o.Number++
			}
		}
		if e, t := quorum.Largest(b.Answers, extension.answeredWithError, extension.equal); t.Agree() == Won {
			o.Err = e.refusal
		}
	}
	return o
}

// answeredWithError tells whether the command failed. An old server does not know the
// conditions, for example.
func (e extension) answeredWithError() bool { return e.refusal != "" }

// extendMissed queues the new expiry for a master that missed it. Otherwise a lock that
// was taken without TTL would stay there for ever.
func (l *Locker) extendMissed(b *ballot.Ballot[extension], i int, a quorum.Answer[extension], r ExtendRequest) {
	if r.Value != nil {
		return // a lock that is renewed is renewed again
	}
	if !a.State.Failed() || r.Persist {
		return
	}
	e, _ := quorum.Largest(b.Answers, extension.granted, extension.equal)
	if e.of.value == nil {
		return
	}
	end := b.Started.Add(r.TTL)
	l.masters.At(i).Stream(r.DB).Deliver(&stream.Debt{Script: stream.ExpireScript, Key: b.Keys[0], Value: string(e.of.value), Ttl: end}, time.Now(), true)
}
