package redlock

import (
	"cmp"
	"context"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// ExtendRequest changes how long a key lives: the EXPIRE family and PERSIST.
type ExtendRequest struct {
	DB        int
	Key       []byte
	TTL       time.Duration // above 0, whole milliseconds; ignored with Persist
	Persist   bool
	Condition string // "", NX, XX, GT or LT, which the masters judge
}

// extension is what one master did: whether it changed the TTL, and of what.
type extension struct {
	of      reading
	changed bool
	refusal string // the error the command was answered with
}

func (e extension) equal(f extension) bool {
	return e.changed == f.changed && e.refusal == f.refusal && e.of.equal(f.of)
}

func (e extension) granted() bool { return e.changed }

// Extend is won when a quorum changed the TTL of one and the same value and
// some validity is left. A changed TTL is never undone: that would break a
// newer extension. Masters that were away are told by value when they are back.
func (l *Locker) Extend(ctx context.Context, r ExtendRequest) Outcome {
	key := string(r.Key) // debts outlive the call
	// Ahead of those that wait, but not in the middle of another request: the
	// votes it is about to lose would count for this one.
	pass, err := l.turns.take(ctx, r.DB, true, key)
	if err != nil {
		return Outcome{Verdict: Lost}
	}
	defer pass()
	command := [][]byte{[]byte("PEXPIRE"), r.Key, resp.Decimal(r.TTL.Milliseconds())}
	if r.Persist {
		command = [][]byte{[]byte("PERSIST"), r.Key}
	} else if r.Condition != "" {
		command = append(command, []byte(r.Condition))
	}
	frames := resp.AppendCommand(resp.AppendCommand(nil, []byte("GET"), r.Key), command...)
	b := hold(l, frames, question[extension]{
		kind:    KindExtend,
		db:      r.DB,
		keys:    []string{key},
		creates: true,
		lives:   l.covered(r.TTL),
		replies: 2,
		parse: func(replies [][]byte) (extension, error) {
			v, err := parseReading(replies[0])
			if resp.IsError(replies[1]) {
				return extension{refusal: resp.ErrorText(replies[1])}, readAs(replies[1], true)
			}
			n, ok := resp.ParseInteger(replies[1])
			return extension{of: v, changed: n == 1}, cmp.Or(err, readAs(replies[1], ok))
		},
		vote: func(e extension) Vote { return voteOf(e.changed) },
		decide: func(answers []quorum.Answer[extension], elapsed time.Duration) Verdict {
			if _, t := quorum.Largest(answers, extension.answeredWithError, extension.equal); t.Agree() == Won {
				return Lost
			}
			_, t := quorum.Largest(answers, extension.granted, extension.equal)
			if r.Persist {
				return t.Agree()
			}
			return l.inTime(t.Agree(), r.TTL, elapsed)
		},
		late: func(b *ballot[extension], i int, a quorum.Answer[extension], verdict Verdict) {
			if verdict == Won {
				l.extendMissed(b, i, a, r)
			}
		},
	})
	o := b.outcome()
	switch o.Verdict {
	case Won:
		for i, a := range b.answers {
			l.extendMissed(b, i, a, r)
		}
	case Lost:
		if e, t := quorum.Largest(b.answers, extension.answeredWithError, extension.equal); t.Agree() == Won {
			o.Err = e.refusal
		}
	}
	return o
}

// answeredWithError: an old server does not know the condition, say.
func (e extension) answeredWithError() bool { return e.refusal != "" }

// extendMissed leaves the expiry to a master that did not hear of it; without
// it a lock that was taken without TTL would stay there for ever.
func (l *Locker) extendMissed(b *ballot[extension], i int, a quorum.Answer[extension], r ExtendRequest) {
	if !a.State.Failed() || r.Persist {
		return
	}
	e, _ := quorum.Largest(b.answers, extension.granted, extension.equal)
	if e.of.value == nil {
		return
	}
	end := b.started.Add(r.TTL)
	l.masters[i].stream(r.DB).Deliver(&stream.Debt{Script: expireScript.text, Key: b.keys[0], Value: string(e.of.value), Ttl: end}, time.Now(), true)
}
