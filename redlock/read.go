package redlock

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// Reads answer what a quorum agrees on, of masters that may vote. "Absent" is said
// only if no completion of the missing answers could still make the key exist.

// reading is what one master said of a key.
type reading struct {
	value []byte // nil: absent
	err   string // the server's error instead, such as WRONGTYPE
}

func (r reading) absent() bool { return r.value == nil && r.err == "" }

func (r reading) equal(s reading) bool {
	return r.err == s.err && (r.value == nil) == (s.value == nil) && bytes.Equal(r.value, s.value)
}

// parseReading reads the reply to a GET of ours, a bulk string, which is copied.
func parseReading(reply []byte) (reading, error) { return parseReadingAs(reply, ownAs) }

func parseReadingAs(reply []byte, as func([]byte, bool) error) (reading, error) {
	switch {
	case resp.IsError(reply):
		return reading{err: resp.ErrorText(reply)}, as(reply, true)
	case resp.IsNil(reply):
		return reading{}, nil
	}
	v, ok := resp.ParseBulk(reply)
	return reading{value: append([]byte{}, v...)}, as(reply, ok)
}

// text is the value; nil if it is an error.
func (r reading) number() (int64, bool) { return resp.ParseDecimal(r.value) }

func voteOfReading(r reading) Vote { return voteOf(!r.absent()) }

func present(r reading) bool { return !r.absent() }

func pluralityOfReadings(answers []quorum.Answer[reading]) (reading, quorum.Tally) {
	return quorum.Largest(answers, present, reading.equal)
}

// Get asks what the key holds. Won: Value is it. Lost: the key is absent. Where
// copies go on to differ, Value is the one that all will be made equal to.
func (l *Locker) Get(ctx context.Context, db int, key []byte) Outcome {
	o, _ := l.getOrChoose(ctx, db, key)
	return o
}

func (l *Locker) getOrChoose(ctx context.Context, db int, key []byte) (o Outcome, split bool) {
	var b *ballot[reading]
	o = l.again(ctx, false, func() (o Outcome) {
		b, o = l.get(db, key)
		return o
	})
	if o.Verdict != NoQuorum {
		return o, false
	}
	i, split := quorum.Split(b.answers, present, reading.equal, reading.number)
	if split {
		r := b.answers[i].Value
		o.Verdict, o.Value, o.Err = Won, r.value, r.err
	}
	return o, split
}

func (l *Locker) read(db int, key []byte) *ballot[reading] {
	lock := string(key) // late answers outlive the call
	b := hold(l, resp.AppendCommand(nil, []byte("GET"), key), question[reading]{
		kind:    KindRead,
		db:      db,
		replies: 1,
		parse:   func(replies [][]byte) (reading, error) { return parseReading(replies[0]) },
		vote:    voteOfReading,
		decide: func(answers []quorum.Answer[reading], _ time.Duration) Verdict {
			return quorum.Exists(answers, present, reading.equal)
		},
		late: func(_ *ballot[reading], _ int, a quorum.Answer[reading], verdict Verdict) {
			mendLate(l, db, lock, a, verdict, present)
		},
	})
	mendRead(b, lock, present)
	return b
}

func (l *Locker) get(db int, key []byte) (*ballot[reading], Outcome) {
	b := l.read(db, key)
	o := b.outcome()
	if o.Verdict == Won {
		r, _ := pluralityOfReadings(b.answers)
		o.Value, o.Err = r.value, r.err
	}
	return b, o
}

// Exists tells whether the key exists on a quorum (Won) or not (Lost).
func (l *Locker) Exists(ctx context.Context, db int, key []byte) Outcome {
	return l.again(ctx, false, func() Outcome { return l.exists(db, key) })
}

func (l *Locker) exists(db int, key []byte) Outcome {
	lock := string(key)
	b := hold(l, resp.AppendCommand(nil, []byte("EXISTS"), key), question[bool]{
		kind:    KindRead,
		db:      db,
		replies: 1,
		parse:   parseDone,
		vote:    voteOf,
		decide: func(answers []quorum.Answer[bool], _ time.Duration) Verdict {
			return quorum.Count(answers, isGranted).Agree()
		},
		late: func(_ *ballot[bool], _ int, a quorum.Answer[bool], verdict Verdict) {
			mendLate(l, db, lock, a, verdict, isGranted)
		},
	})
	mendRead(b, lock, isGranted)
	return b.outcome()
}

// mendRead has copies mended where a read has found some although it did not find
// that the key exists, or what it holds.
func mendRead[A any](b *ballot[A], key string, present func(A) bool) {
	if b.verdict != Won && slices.ContainsFunc(b.answers, func(a quorum.Answer[A]) bool { return a.State.Heard() && present(a.Value) }) {
		b.locker.mend(b.db, key)
	}
}

// mendLate is mendRead of an answer that came after the verdict.
func mendLate[A any](l *Locker, db int, key string, a quorum.Answer[A], verdict Verdict, present func(A) bool) {
	if verdict != Won && a.State.Heard() && present(a.Value) {
		l.mend(db, key)
	}
}

// again repeats a question whose answers differ although a quorum answered:
// the copies of a lock expire a little apart, and agree when the last has
// gone. A question that may create is repeated as an acquire is.
func (l *Locker) again(ctx context.Context, creates bool, ask func() Outcome) Outcome {
	limits := l.settings()
	pause := min(limits.Retry.Delay, expiryPause)
	if creates {
		pause = limits.Retry.Delay
	}
	for try := 0; ; try++ {
		o := ask()
		if !split(o) || try >= limits.Retry.Count {
			return o
		}
		select {
		case <-time.After(rand.N(pause + 1)):
		case <-ctx.Done():
			return o
		}
	}
}

// expiryPause is about how far apart the copies of a lock expire.
const expiryPause = 10 * time.Millisecond

// TTLRequest asks for a remaining time. Name is the command the client sent
// and sets the unit: TTL, PTTL, EXPIRETIME or PEXPIRETIME.
type TTLRequest struct {
	DB   int
	Key  []byte
	Name string
}

// expiry is what one master said to a TTLRequest.
type expiry struct {
	n   int64 // -2 absent, -1 none
	err string
}

func (e expiry) exists() bool { return e.n != effect.NoKey && e.err == "" }

// TTL answers how long the key still lives on a quorum: the Q-th largest time
// among the masters' answers, as Number; -1 without expiry, -2 if no quorum
// has it.
func (l *Locker) TTL(ctx context.Context, r TTLRequest) Outcome {
	return l.again(ctx, false, func() Outcome { return l.ttl(r) })
}

func (l *Locker) ttl(r TTLRequest) Outcome {
	b := hold(l, resp.AppendCommand(nil, []byte(r.Name), r.Key), question[expiry]{
		kind:    KindRead,
		db:      r.DB,
		replies: 1,
		parse: func(replies [][]byte) (expiry, error) {
			if resp.IsError(replies[0]) {
				return expiry{err: resp.ErrorText(replies[0])}, readAs(replies[0], true)
			}
			n, ok := resp.ParseInteger(replies[0])
			return expiry{n: n}, readAs(replies[0], ok)
		},
		vote: func(e expiry) Vote { return voteOf(e.exists()) },
		decide: func(answers []quorum.Answer[expiry], _ time.Duration) Verdict {
			if _, t := pluralityOfErrors(answers); t.Agree() == Won {
				return Won
			}
			return quorum.Count(answers, expiry.exists).Agree()
		},
	})
	o := b.outcome()
	switch o.Verdict {
	case Lost:
		o.Number = effect.NoKey
	case Won:
		if e, t := pluralityOfErrors(b.answers); t.Agree() == Won {
			o.Err = e.err
			break
		}
		o.Number = quorumExpiry(b.answers)
	}
	return o
}

func pluralityOfErrors(answers []quorum.Answer[expiry]) (expiry, quorum.Tally) {
	return quorum.Largest(answers,
		func(e expiry) bool { return e.err != "" },
		func(a, b expiry) bool { return a.err == b.err })
}

// quorumExpiry is the Q-th largest of the times answered, Q of which exist.
func quorumExpiry(answers []quorum.Answer[expiry]) int64 {
	var times []int64
	for _, a := range answers {
		switch {
		case a.State != quorum.Answered || !a.Value.exists():
		case a.Value.n == effect.NoExpiry:
			times = append(times, math.MaxInt64)
		default:
			times = append(times, a.Value.n)
		}
	}
	n, _ := quorum.Attained(len(answers), times)
	if n == math.MaxInt64 {
		return effect.NoExpiry
	}
	return n
}
