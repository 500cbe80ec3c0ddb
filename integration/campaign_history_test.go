package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// leaseStep is one step of the history of one key.
type leaseStep struct {
	kind  stepKind
	token string
}

type stepKind string

const (
	stepTake   stepKind = "is granted to"
	stepKeep   stepKind = "is extended for"
	stepGive   stepKind = "is released by"
	stepDenied stepKind = "is denied to be held by"
	stepEnd    stepKind = "may have ended for"
)

// leaseModel is one lock with leases on one perfect server; its state is the
// holder.
//
// Where a lock may have ended without anybody having been told (its lease ran
// out, a release was answered with an error or too late to know) the history
// has a stepEnd, from the first moment at which that may have happened on. An
// acquire that was refused or ended in an error is not in the history: Redlock
// may fail to elect anybody, and what may have happened unseen can only keep
// others out. An extension that ended in an error counts for nothing.
var leaseModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		holder, step := state.(string), input.(leaseStep)
		switch step.kind {
		case stepTake:
			return holder == "", step.token
		case stepKeep:
			return holder == step.token, holder
		case stepGive:
			return holder == step.token, ""
		case stepDenied:
			return holder != step.token, holder
		}
		if holder == step.token {
			return true, ""
		}
		return true, holder
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string {
		step := input.(leaseStep)
		return fmt.Sprintf("it %s %s", step.kind, step.token)
	},
}

// stepsOf writes the leases of one key as a history for leaseModel.
func stepsOf(leases []*lease) []porcupine.Operation {
	var steps []porcupine.Operation
	for _, l := range leases {
		add := func(kind stepKind, from, to time.Duration) {
			steps = append(steps, porcupine.Operation{
				ClientId: l.client, Input: leaseStep{kind, l.token}, Call: int64(from), Return: int64(to),
			})
		}
		add(stepTake, l.taken.begin, l.taken.end)
		for _, e := range l.extends {
			switch e.answer {
			case yes:
				add(stepKeep, e.begin, e.end)
			case no:
				add(stepDenied, e.begin, e.end)
			}
		}
		ends := l.until
		if g := l.given; g != nil {
			switch {
			case g.answer == yes && g.end < l.until:
				add(stepGive, g.begin, g.end)
				continue
			case g.answer == no:
				add(stepDenied, g.begin, g.end)
			default:
				ends = min(ends, g.begin)
			}
		}
		add(stepEnd, ends, max(ends, l.succeeded(leases)))
	}
	return steps
}

// succeeded is a moment by which another client has certainly been granted the
// lock after this one, and so the end of the time in which this one's end can
// matter. It keeps the check fast.
func (l *lease) succeeded(leases []*lease) time.Duration {
	first := time.Duration(1<<63 - 1)
	at, _ := slices.BinarySearchFunc(leases, l.taken.end, func(o *lease, t time.Duration) int { return int(o.taken.begin - t) })
	for _, o := range leases[at:] {
		if o.taken.begin > first {
			break
		}
		if o.taken.begin > l.taken.end {
			first = min(first, o.taken.end)
		}
	}
	return first
}

// pieces cuts a history where nothing is going on and the lock is free, so
// that each piece can be checked alone.
func pieces(steps []porcupine.Operation) [][]porcupine.Operation {
	slices.SortStableFunc(steps, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var all [][]porcupine.Operation
	began, open, busy := 0, 0, int64(0)
	for i, s := range steps {
		if open == 0 && i > began && s.Call > busy {
			all = append(all, steps[began:i])
			began = i
		}
		busy = max(busy, s.Return)
		switch s.Input.(leaseStep).kind {
		case stepTake:
			open++
		case stepGive, stepEnd:
			open--
		}
	}
	return append(all, steps[began:])
}

// checkHistory returns what is wrong with what the clients were told, by calls
// that count from began.
func checkHistory(began time.Time, calls []lockCall) (wrong []violation) {
	byKey := map[string][]*lease{}
	for _, l := range leasesOf(calls) {
		byKey[l.key] = append(byKey[l.key], l)
	}
	for _, key := range sortedKeys(byKey) {
		leases := byKey[key]
		slices.SortFunc(leases, func(a, b *lease) int { return int(a.taken.begin - b.taken.begin) })
		wrong = append(wrong, overlaps(began, leases)...)
		for _, piece := range pieces(stepsOf(leases)) {
			if result := porcupine.CheckOperationsTimeout(leaseModel, piece, patience); result != porcupine.Ok {
				wrong = append(wrong, violation{began.Add(time.Duration(piece[len(piece)-1].Call)),
					fmt.Sprintf("porcupine says %s: no order of these fits one lock %s on one server:%s", result, key, describe(piece))})
			}
		}
	}
	return wrong
}

// overlaps finds clients that could count on the same lock at the same time.
func overlaps(began time.Time, leases []*lease) (wrong []violation) {
	var relied []*lease
	for _, l := range leases {
		if from, to := l.held(); to > from {
			relied = append(relied, l)
		}
	}
	start := func(l *lease) time.Duration { from, _ := l.held(); return from }
	slices.SortFunc(relied, func(a, b *lease) int { return int(start(a) - start(b)) })
	for i, l := range relied {
		_, to := l.held()
		for _, other := range relied[i+1:] {
			if start(other) >= to {
				break
			}
			wrong = append(wrong, violation{began.Add(start(other)), fmt.Sprintf("two holders of %s: %s, and %s", l.key, l, other)})
		}
	}
	return wrong
}

func describe(steps []porcupine.Operation) string {
	var b strings.Builder
	for i, s := range steps {
		if i == 40 {
			fmt.Fprintf(&b, "\n\t... and %d more", len(steps)-i)
			break
		}
		fmt.Fprintf(&b, "\n\t%s to %s %s", stamp(time.Duration(s.Call)), stamp(time.Duration(min(s.Return, int64(time.Hour)*1000))),
			leaseModel.DescribeOperation(s.Input, nil))
	}
	return b.String()
}

// TestLeaseModel: the judge of the campaign is judged by histories whose
// verdict is known.
func TestLeaseModel(t *testing.T) {
	const ttl = 1000
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	call := func(asked lockQuestion, token string, begin, end int, answer lockAnswer) lockCall {
		return lockCall{key: "lock:x", asked: asked, token: token, ttl: ms(ttl), begin: ms(begin), end: ms(end), answer: answer}
	}
	for name, test := range map[string]struct {
		sound bool
		calls []lockCall
	}{
		"one after the other": {true, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askRelease, "a", 500, 510, yes),
			call(askAcquire, "b", 505, 520, yes), call(askRelease, "b", 600, 610, yes)}},
		"two holders": {false, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askRelease, "a", 500, 510, yes), call(askAcquire, "b", 400, 420, yes)}},
		"after the lease has run out": {true, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askAcquire, "b", 980, 1000, yes)}},
		"before the lease has run out": {false, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askAcquire, "b", 960, 980, yes)}},
		"after the first lease, within the extension": {false, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askExtend, "a", 500, 510, yes), call(askAcquire, "b", 1200, 1210, yes)}},
		"after the extension": {true, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askExtend, "a", 500, 510, yes), call(askAcquire, "b", 1500, 1510, yes)}},
		"an unsure extension counts for nothing": {true, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askExtend, "a", 500, 510, unsure), call(askAcquire, "b", 1000, 1010, yes)}},
		"an unsure release may have happened": {true, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askRelease, "a", 100, 150, unsure), call(askAcquire, "b", 120, 130, yes)}},
		"an unsure release may happen late": {true, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askRelease, "a", 100, 150, unsure), call(askAcquire, "b", 300, 310, yes)}},
		"not before it was asked for": {false, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askRelease, "a", 100, 150, unsure), call(askAcquire, "b", 50, 60, yes)}},
		"an unsure acquire may have happened": {true, []lockCall{
			call(askAcquire, "a", 0, 10, unsure), call(askRelease, "a", 20, 30, yes), call(askAcquire, "b", 25, 40, yes)}},
		"the holder is denied": {false, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askRelease, "a", 100, 110, no)}},
		"a holder of yesterday is denied": {true, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askRelease, "a", 1100, 1110, no)}},
		"extended although another had it": {false, []lockCall{
			call(askAcquire, "a", 0, 10, yes), call(askAcquire, "b", 1000, 1010, yes),
			call(askExtend, "a", 1100, 1110, yes), call(askRelease, "b", 1200, 1210, yes)}},
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := checkHistory(time.Now(), test.calls); (len(wrong) == 0) != test.sound {
				t.Errorf("judged %v, want sound: %v", wrong, test.sound)
			}
		})
	}
}
