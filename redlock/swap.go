package redlock

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// SwapRequest stores a value and asks for the old one: GETSET, SET GET.
type SwapRequest struct {
	DB           int
	Key, Value   []byte
	TTL          time.Duration // 0: none
	KeepTTL      bool
	OnlyExisting bool   // XX
	Expected     []byte // what this client last read there; nil if nothing
}

// Swap serves the lock of Redis's old SETNX page: a timestamp that GETSET takes over. Each
// master swaps atomically. Won: Value is the old value that a quorum returned, or nil if
// there was none. So at most one of several racing callers gets the value that they all
// expect. Lost: Value is neither the expected value nor the caller's own. Nothing is
// undone, because a losing GETSET leaves its value on one Redis, too. If racing callers
// left different values, all masters get the latest.
func (l *Locker) Swap(ctx context.Context, r SwapRequest) Outcome {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value) // debts outlive the call
	turn, err := l.lanes.Enter(ctx, r.DB, []string{string(r.Key)}, lane.Queueing{})
	if err != nil {
		return ballot.Abandoned()
	}
	defer turn.Leave()
	b := ballot.Poll(l.box, r.append(nil), ballot.Question[reading]{
		Kind:    KindSwap,
		DB:      r.DB,
		Replies: 1,
		Keys:    []string{string(r.Key)},
		Creates: true,
		TTL:     l.masters.Covered(r.TTL),
		Gives:   r.TTL,
		Parse:   func(replies [][]byte) (reading, error) { return parseReadingAs(replies[0], ballot.ReadAs) },
		Vote:    func(v reading) Vote { return ballot.VoteOf(v.err == "") },
		Decide: func(answers []quorum.Answer[reading], _ time.Duration) Verdict {
			_, t := pluralityOfAll(answers)
			return t.Agree()
		},
		Settler: ballot.SettleFunc[reading](func(b *ballot.Ballot[reading], i int, a quorum.Answer[reading], verdict Verdict) {
			if verdict == Won {
				l.swapMissed(b, i, a, r)
			}
		}),
	})
	o := b.Outcome()
	switch o.Verdict {
	case Won:
		old, _ := pluralityOfAll(b.Answers)
		o.Value, o.Err = old.value, old.err
	case Lost:
		if o.Value = r.another(b.Answers); o.Value == nil {
			o.Verdict = NoQuorum // Lost with nil would say that the lock was free
		}
		l.unite(r)
		l.mender.Mend(r.DB, string(r.Key))
	}
	return o
}

// unite ends a race that nobody won. The values have no TTL, so without a quorum for one
// of them nobody could ever read the lock again. If a racer did win, it loses nothing: on
// one Redis, too, the losers overwrite its value.
func (l *Locker) unite(r SwapRequest) {
	if r.TTL != 0 || r.KeepTTL {
		return
	}
	b := l.read(r.DB, r.Key)
	if _, t := pluralityOfReadings(b.Answers); t.Granted >= quorum.Size(len(b.Answers)) {
		return
	}
	var latest []byte
	for _, a := range b.Answers {
		if a.State.Heard() && isTimestamp(a.Value.value) && laterTimestamp(a.Value.value, latest) {
			latest = a.Value.value
		}
	}
	for i, a := range b.Answers {
		if latest != nil && a.State.Heard() && a.Value.value != nil && !bytes.Equal(a.Value.value, latest) {
			l.masters.At(i).Stream(r.DB).Deliver(&stream.Debt{Exact: resp.AppendEval(nil, swapScript, [][]byte{r.Key}, a.Value.value, latest)}, time.Now(), false)
		}
	}
}

// isTimestamp tells whether v is a decimal number, with or without a fraction.
func isTimestamp(v []byte) bool {
	whole, fraction, _ := bytes.Cut(v, []byte("."))
	digits := func(part []byte) bool {
		return !bytes.ContainsFunc(part, func(c rune) bool { return c < '0' || c > '9' })
	}
	return len(whole) > 0 && len(v) < 40 && digits(whole) && digits(fraction)
}

// laterTimestamp tells whether timestamp a is later than b. Every timestamp is later
// than nil.
func laterTimestamp(a, b []byte) bool {
	wholeA, fractionA, _ := bytes.Cut(bytes.TrimLeft(a, "0"), []byte("."))
	wholeB, fractionB, _ := bytes.Cut(bytes.TrimLeft(b, "0"), []byte("."))
	return b == nil || cmp.Or(len(wholeA)-len(wholeB), bytes.Compare(wholeA, wholeB), bytes.Compare(fractionA, fractionB)) > 0
}

// swapMissed queues a swap for a master that missed it. Locks of this kind have no TTL,
// so the old value would stay there for ever.
func (l *Locker) swapMissed(b *ballot.Ballot[reading], i int, a quorum.Answer[reading], r SwapRequest) {
	old, _ := pluralityOfAll(b.Answers)
	if a.State.Failed() && r.TTL == 0 && !r.KeepTTL && old.value != nil {
		swap := resp.AppendEval(nil, swapScript, [][]byte{r.Key}, old.value, r.Value)
		l.masters.At(i).Stream(r.DB).Deliver(&stream.Debt{Exact: swap}, time.Now(), false)
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

// another returns an old value that shows the caller that it did not win. It prefers the
// latest timestamp, because one that is over would say that the caller won.
func (r SwapRequest) another(answers []quorum.Answer[reading]) []byte {
	var best []byte
	for _, a := range answers {
		v := a.Value.value
		if a.State != quorum.Answered || bytes.Equal(v, r.Expected) || bytes.Equal(v, r.Value) {
			continue
		}
		if best == nil || isTimestamp(v) && (!isTimestamp(best) || laterTimestamp(v, best)) {
			best = v
		}
	}
	return best
}
