package redlock

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// Reads return what a quorum of masters that may vote agrees on. They say "absent" only if
// the missing answers, whatever they are, could not make the key exist.

// reading is one master's answer about a key.
type reading struct {
	value   []byte    // nil: absent
	err     string    // an error in place of a value, such as WRONGTYPE
	expires time.Time // zero: never, or unknown
}

func (r reading) present() bool { return r.value != nil || r.err != "" }

func (r reading) equal(s reading) bool {
	return r.err == s.err && (r.value == nil) == (s.value == nil) && bytes.Equal(r.value, s.value)
}

// parseReading reads the replies to GETRANGE, or GET, and PTTL. It copies the value. If the key began
// to exist in between, the reading is that of an empty value.
func parseReading(replies [][]byte) (reading, error) {
	if resp.IsError(replies[0]) {
		return reading{err: resp.ErrorText(replies[0])}, ballot.OwnAs(replies[0], true)
	}
	v, isBulk := resp.ParseBulk(replies[0])
	isNil := resp.IsNil(replies[0])
	left, isInteger := resp.ParseInteger(replies[1])
	r := reading{value: append([]byte{}, v...)}
	if isNil || len(v) == 0 && left == effect.NoKey {
		r.value = nil
	}
	if left >= 0 {
		r.expires = time.Now().Add(time.Duration(left) * time.Millisecond)
	}
	return r, cmp.Or(ballot.OwnAs(replies[0], isBulk || isNil), ballot.OwnAs(replies[1], isInteger))
}

// isCut tells whether this is the beginning of a large value.
func (r reading) isCut() bool { return len(r.value) == ballot.Small+1 }

// number is the value as an integer, if it is one.
func (r reading) number() (int64, bool) { return resp.ParseDecimal(r.value) }

// higher is the higher one of two counters. It returns false if one is none.
func (r reading) higher(s reading) (reading, bool) {
	m, isNumber := r.number()
	n, isToo := s.number()
	if m < n {
		r = s
	}
	return r, isNumber && isToo
}

func pluralityOfReadings(answers []quorum.Answer[reading]) (reading, quorum.Tally) {
	return quorum.Largest(answers, reading.present, reading.equal)
}

// Get reads a key. Won: Value is the key's value. Lost: the key is absent. If copies
// differ to the last try, Value is the one that all copies will be made equal to.
func (l *Locker) Get(ctx context.Context, db int, key []byte) Outcome {
	o, _ := l.getOrChoose(ctx, db, key)
	return o
}

func (l *Locker) getOrChoose(ctx context.Context, db int, key []byte) (o Outcome, split bool) {
	var b *ballot.Ballot[reading]
	o = l.settings().Retry.Again(ctx, false, func() (o Outcome) {
		b, o = l.get(db, key)
		return o
	})
	if o.Verdict != NoQuorum {
		return o, false
	}
	r, split := quorum.Split(b.Answers, reading.present, reading.equal, reading.higher)
	if split {
		o.Verdict, o.Value, o.Err = Won, r.value, r.err
	}
	return o, split
}

// look asks all masters for the value and the lifetime of a key: for a small value, and then in its turn
// for a large one. The looks of a DEL keep what they show; nil: it is no DEL.
func (l *Locker) look(db int, key []byte, looks *looks) *ballot.Ballot[reading] {
	b := l.lookUpTo(db, key, looks, ballot.Small, false)
	if slices.ContainsFunc(b.Answers, func(a quorum.Answer[reading]) bool { return a.State.Heard() && a.Value.isCut() }) {
		return l.lookUpTo(db, key, looks, int(l.masters.Limits().MaxReply), true)
	}
	return b
}

// lookUpTo asks for a value, or for so much of it that it is certainly longer than most bytes.
func (l *Locker) lookUpTo(db int, key []byte, looks *looks, most int, large bool) *ballot.Ballot[reading] {
	lock, number := string(key), looks.begin() // late answers outlive the call
	frames := resp.AppendCommand(nil, []byte("GETRANGE"), key, []byte("0"), resp.Decimal(int64(most)))
	return ballot.Poll(l.box, resp.AppendCommand(frames, []byte("PTTL"), key), ballot.Question[reading]{
		Kind:    KindRead,
		DB:      db,
		Replies: 2,
		Large:   large,
		Parse:   parseReading,
		Vote:    func(r reading) Vote { return ballot.VoteOf(r.present()) },
		Decide: func(answers []quorum.Answer[reading], _ time.Duration) Verdict {
			return quorum.Exists(answers, reading.present, reading.equal)
		},
		Settler: ballot.SettleFunc[reading](func(b *ballot.Ballot[reading], i int, a quorum.Answer[reading], verdict Verdict) {
			looks.add(number, b, i, a)
			mendUnlessWon(l, db, lock, a, verdict, reading.present)
		}),
	})
}

func (l *Locker) get(db int, key []byte) (*ballot.Ballot[reading], Outcome) {
	b := l.look(db, key, nil)
	o := b.Outcome()
	if o.Verdict == Won {
		r, _ := pluralityOfReadings(b.Answers)
		o.Value, o.Err = r.value, r.err
	}
	return b, o
}

// Exists tells whether a quorum has the key (Won) or not (Lost).
func (l *Locker) Exists(ctx context.Context, db int, key []byte) Outcome {
	return l.settings().Retry.Again(ctx, false, func() Outcome { return l.exists(db, key) })
}

func (l *Locker) exists(db int, key []byte) Outcome {
	lock := string(key)
	return ballot.Poll(l.box, resp.AppendCommand(nil, []byte("EXISTS"), key), ballot.Question[bool]{
		Kind:    KindRead,
		DB:      db,
		Replies: 1,
		Parse:   ballot.ParseDone,
		Vote:    ballot.VoteOf,
		Decide:  ballot.Tallied(quorum.Tally.Agree),
		Settler: ballot.SettleFunc[bool](func(_ *ballot.Ballot[bool], _ int, a quorum.Answer[bool], verdict Verdict) {
			mendUnlessWon(l, db, lock, a, verdict, ballot.Yes)
		}),
	}).Outcome()
}

// mendUnlessWon mends the copies of a key if an answer shows one and the read was not won:
// it could not say that the key exists, or what it holds.
func mendUnlessWon[A any](l *Locker, db int, key string, a quorum.Answer[A], verdict Verdict, present func(A) bool) {
	if verdict != Won && a.State.Heard() && present(a.Value) {
		l.mender.Mend(db, key)
	}
}

// TTLRequest asks for a key's remaining time, or for the time of its expiry. Name is the
// client's command, which also sets the unit: TTL, PTTL, EXPIRETIME or PEXPIRETIME.
type TTLRequest struct {
	DB   int
	Key  []byte
	Name string
}

// expiry is one master's answer to a TTLRequest.
type expiry struct {
	n   int64 // -2: the key is absent; -1: it does not expire
	err string
}

func (e expiry) exists() bool { return e.n != effect.NoKey && e.err == "" }

// TTL tells how long the key still lives on a quorum. Number is the Q-th largest time
// among the masters' answers. It is -1 if the key does not expire, and -2 if no quorum
// has it.
func (l *Locker) TTL(ctx context.Context, r TTLRequest) Outcome {
	return l.settings().Retry.Again(ctx, false, func() Outcome { return l.ttl(r) })
}

func (l *Locker) ttl(r TTLRequest) Outcome {
	b := ballot.Poll(l.box, resp.AppendCommand(nil, []byte(r.Name), r.Key), ballot.Question[expiry]{
		Kind:    KindRead,
		DB:      r.DB,
		Replies: 1,
		Parse: func(replies [][]byte) (expiry, error) {
			if resp.IsError(replies[0]) {
				return expiry{err: resp.ErrorText(replies[0])}, ballot.ReadAs(replies[0], true)
			}
			n, ok := resp.ParseInteger(replies[0])
			return expiry{n: n}, ballot.ReadAs(replies[0], ok)
		},
		Vote:   func(e expiry) Vote { return ballot.VoteOf(e.exists()) },
		Decide: func(answers []quorum.Answer[expiry], _ time.Duration) Verdict { return decideExpiry(answers) },
	})
	o := b.Outcome()
	switch o.Verdict {
	case Lost:
		o.Number = effect.NoKey
	case Won:
		if e, t := pluralityOfErrors(b.Answers); t.Agree() == Won {
			o.Err = e.err
			break
		}
		o.Number = quorumExpiry(b.Answers)
	}
	return o
}

// decideExpiry waits for the others if some copies end and some do not: one master may have missed what the others did,
// and the answer would depend on who is asked first.
func decideExpiry(answers []quorum.Answer[expiry]) Verdict {
	if _, t := pluralityOfErrors(answers); t.Agree() == Won {
		return Won
	}
	t := quorum.Count(answers, expiry.exists)
	endless := quorum.Count(answers, func(e expiry) bool { return e.exists() && e.n == effect.NoExpiry })
	if v := t.Agree(); v != Won || t.Pending() == 0 || endless.Granted == 0 || endless.Granted == t.Granted {
		return v
	}
	return Pending
}

func pluralityOfErrors(answers []quorum.Answer[expiry]) (expiry, quorum.Tally) {
	return quorum.Largest(answers,
		func(e expiry) bool { return e.err != "" },
		func(a, b expiry) bool { return a.err == b.err })
}

// quorumExpiry is the Q-th largest time that masters answered. At least Q answered one.
func quorumExpiry(answers []quorum.Answer[expiry]) int64 {
	var times []int64
	for _, a := range answers {
		if a.State == quorum.Answered && a.Value.exists() {
			times = append(times, a.Value.n)
		}
	}
	n, _ := quorum.AttainedTTL(len(answers), times)
	return n
}
