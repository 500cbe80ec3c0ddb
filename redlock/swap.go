package redlock

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// SwapRequest stores a value and asks for the one before: GETSET, SET GET.
type SwapRequest struct {
	DB           int
	Key, Value   []byte
	TTL          time.Duration // 0: none
	KeepTTL      bool
	OnlyExisting bool   // XX
	Expected     []byte // what this client last read there; nil if nothing
}

// Swap carries the lock of the old SETNX page (a timestamp taken over by
// GETSET). Each master swaps atomically. Won: Value is the old value that a
// quorum returned (nil: there was none), so of several racing callers at most
// one gets the value they all expect. Lost: Value is a value other than the
// expected one and other than the caller's own. Nothing is undone: on one
// Redis, too, a losing GETSET leaves its value. Where racing callers have left
// different values, the latest is given to all masters.
func (l *Locker) Swap(ctx context.Context, r SwapRequest) Outcome {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value) // debts outlive the call
	pass, err := l.turns.take(ctx, r.DB, false, string(r.Key))
	if err != nil {
		return Outcome{Verdict: Lost}
	}
	defer pass()
	b := hold(l, r.append(nil), question[reading]{
		kind:    KindSwap,
		db:      r.DB,
		replies: 1,
		keys:    []string{string(r.Key)},
		creates: true,
		lives:   l.covered(r.TTL),
		parse:   func(replies [][]byte) (reading, error) { return parseReadingAs(replies[0], readAs) },
		vote:    func(v reading) Vote { return voteOf(v.err == "") },
		decide: func(answers []quorum.Answer[reading], elapsed time.Duration) Verdict {
			_, t := pluralityOfAll(answers)
			if r.TTL == 0 {
				return t.Agree()
			}
			return l.inTime(t.Agree(), r.TTL, elapsed)
		},
		late: func(b *ballot[reading], i int, a quorum.Answer[reading], verdict Verdict) {
			if verdict == Won {
				l.swapMissed(b, i, a, r)
			}
		},
	})
	o := b.outcome()
	switch o.Verdict {
	case Won:
		old, _ := pluralityOfAll(b.answers)
		o.Value, o.Err = old.value, old.err
		for i, a := range b.answers {
			l.swapMissed(b, i, a, r)
		}
	case Lost:
		if o.Value = r.another(b.answers); o.Value == nil {
			o.Verdict = NoQuorum // nil would say that the lock was free
		}
		l.unite(r)
		l.mend(r.DB, string(r.Key))
	}
	return o
}

// unite ends a race that nobody won. Its values have no TTL, and without a
// quorum for one of them nobody could ever read the lock again. A racer that did
// win loses nothing: on one Redis, too, the losers overwrite its value.
func (l *Locker) unite(r SwapRequest) {
	if r.TTL != 0 || r.KeepTTL {
		return
	}
	b := l.read(r.DB, r.Key)
	if _, t := pluralityOfReadings(b.answers); t.Granted >= quorum.Size(len(b.answers)) {
		return
	}
	var latest []byte
	for _, a := range b.answers {
		if a.State.Heard() && isTimestamp(a.Value.value) && laterTimestamp(a.Value.value, latest) {
			latest = a.Value.value
		}
	}
	for i, a := range b.answers {
		if latest != nil && a.State.Heard() && a.Value.value != nil && !bytes.Equal(a.Value.value, latest) {
			l.masters[i].stream(r.DB).Deliver(&stream.Debt{Exact: swapScript.append(nil, [][]byte{r.Key}, a.Value.value, latest)}, time.Now(), false)
		}
	}
}

// isTimestamp: digits, with a fraction perhaps.
func isTimestamp(v []byte) bool {
	whole, fraction, _ := bytes.Cut(v, []byte("."))
	digits := func(part []byte) bool {
		return !bytes.ContainsFunc(part, func(c rune) bool { return c < '0' || c > '9' })
	}
	return len(whole) > 0 && len(v) < 40 && digits(whole) && digits(fraction)
}

// laterTimestamp compares timestamps; nothing is earlier than any.
func laterTimestamp(a, b []byte) bool {
	wholeA, fractionA, _ := bytes.Cut(bytes.TrimLeft(a, "0"), []byte("."))
	wholeB, fractionB, _ := bytes.Cut(bytes.TrimLeft(b, "0"), []byte("."))
	return b == nil || cmp.Or(len(wholeA)-len(wholeB), bytes.Compare(wholeA, wholeB), bytes.Compare(fractionA, fractionB)) > 0
}

// swapMissed leaves a swap to a master that did not hear of it. Locks of this
// kind have no TTL, so the old value would stand there for ever.
func (l *Locker) swapMissed(b *ballot[reading], i int, a quorum.Answer[reading], r SwapRequest) {
	old, _ := pluralityOfAll(b.answers)
	if a.State.Failed() && r.TTL == 0 && !r.KeepTTL && old.value != nil {
		swap := swapScript.append(nil, [][]byte{r.Key}, old.value, r.Value)
		l.masters[i].stream(r.DB).Deliver(&stream.Debt{Exact: swap}, time.Now(), false)
	}
}

func (r SwapRequest) append(dst []byte) []byte {
	if r.TTL == 0 && !r.KeepTTL && !r.OnlyExisting {
		return resp.AppendCommand(dst, []byte("GETSET"), r.Key, r.Value)
	}
	command := [][]byte{[]byte("SET"), r.Key, r.Value, []byte("GET")}
	if r.OnlyExisting {
		command = append(command, []byte("XX"))
	}
	if r.KeepTTL {
		command = append(command, []byte("KEEPTTL"))
	} else if r.TTL > 0 {
		command = append(command, []byte("PX"), resp.Decimal(r.TTL.Milliseconds()))
	}
	return resp.AppendCommand(dst, command...)
}

func pluralityOfAll(answers []quorum.Answer[reading]) (reading, quorum.Tally) {
	return quorum.Largest(answers, func(reading) bool { return true }, reading.equal)
}

// another picks an old value by which the caller sees that it did not win: the
// latest timestamp, since one that is over would say that it did.
func (r SwapRequest) another(answers []quorum.Answer[reading]) []byte {
	var best []byte
	for _, a := range answers {
		v := a.Value.value
		if a.State != quorum.Answered || v == nil || bytes.Equal(v, r.Expected) || bytes.Equal(v, r.Value) {
			continue
		}
		if best == nil || isTimestamp(v) && (!isTimestamp(best) || laterTimestamp(v, best)) {
			best = v
		}
	}
	return best
}
