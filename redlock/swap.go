package redlock

import (
	"bytes"
	"context"
	"time"
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
// Redis, too, a losing GETSET leaves its value.
func (l *Locker) Swap(ctx context.Context, r SwapRequest) Outcome {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value) // debts outlive the call
	pass, err := l.turns.take(ctx, r.DB, r.Key)
	if err != nil {
		return Outcome{Verdict: Lost}
	}
	defer pass()
	b := hold(l, question[reading]{
		kind:    KindSwap,
		db:      r.DB,
		frames:  r.append(nil),
		replies: 1,
		keys:    [][]byte{r.Key},
		creates: true,
		lives:   l.covered(r.TTL),
		parse:   func(replies [][]byte) (reading, error) { return parseReading(replies[0]) },
		vote:    func(v reading) Vote { return voteOf(v.err == "") },
		decide: func(answers []answer[reading], elapsed time.Duration) Verdict {
			_, t := pluralityOfAll(answers)
			v := t.agreement()
			if v == Won && r.TTL > 0 && l.validity(r.TTL, elapsed) <= 0 {
				return Lost
			}
			return v
		},
		late: func(b *ballot[reading], i int, a answer[reading], verdict Verdict) {
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
	}
	return o
}

// swapMissed leaves a swap to a master that did not hear of it. Locks of this
// kind have no TTL, so the old value would stand there for ever.
func (l *Locker) swapMissed(b *ballot[reading], i int, a answer[reading], r SwapRequest) {
	old, _ := pluralityOfAll(b.answers)
	if a.state.failed() && r.TTL == 0 && !r.KeepTTL && old.value != nil {
		swap := swapScript.append(nil, [][]byte{r.Key}, old.value, r.Value)
		l.masters[i].stream(r.DB).deliver(&debt{exact: swap}, time.Now(), false)
	}
}

func (r SwapRequest) append(dst []byte) []byte {
	if r.TTL == 0 && !r.KeepTTL && !r.OnlyExisting {
		return appendCommand(dst, []byte("GETSET"), r.Key, r.Value)
	}
	command := [][]byte{[]byte("SET"), r.Key, r.Value, []byte("GET")}
	if r.OnlyExisting {
		command = append(command, []byte("XX"))
	}
	if r.KeepTTL {
		command = append(command, []byte("KEEPTTL"))
	} else if r.TTL > 0 {
		command = append(command, []byte("PX"), decimal(r.TTL.Milliseconds()))
	}
	return appendCommand(dst, command...)
}

func pluralityOfAll(answers []answer[reading]) (reading, tally) {
	return plurality(answers, func(reading) bool { return true }, reading.equal)
}

// another picks an old value by which the caller sees that it did not win.
func (r SwapRequest) another(answers []answer[reading]) []byte {
	for _, a := range answers {
		v := a.value.value
		if a.state == answered && v != nil && !bytes.Equal(v, r.Expected) && !bytes.Equal(v, r.Value) {
			return v
		}
	}
	return nil
}
