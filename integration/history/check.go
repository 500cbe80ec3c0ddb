package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// leaseModel is one lock with leases on one perfect server. Its state is the holder.
//
// A lock may end without any client knowing: its lease ran out, a release was answered
// with an error, or its answer came after the lease. Then the history has a stepEnd, from
// the first moment at which the lock may have ended.
//
// The history has no acquire that was refused or ended in an error. Redlock may fail to
// elect anybody, and an unseen grant can only keep others out. An extension that ended in
// an error counts for nothing.
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

// stepsOf turns the leases of one key into a history for leaseModel.
func stepsOf(leases []*lease) []porcupine.Operation {
	var steps []porcupine.Operation
	for _, l := range leases {
		add := func(kind stepKind, from, to time.Duration) {
			steps = append(steps, porcupine.Operation{
				ClientId: l.client, Input: leaseStep{kind, l.token}, Call: int64(from), Return: int64(to),
			})
		}
		add(stepTake, l.taken.Begin, l.taken.End)
		for _, e := range l.extends {
			switch e.Answer {
			case Yes:
				add(stepKeep, e.Begin, e.End)
			case no:
				add(stepDenied, e.Begin, e.End)
			}
		}
		ends := l.until
		if g := l.given; g != nil {
			switch {
			case g.Answer == Yes && g.End < l.until:
				add(stepGive, g.Begin, g.End)
				continue
			case g.Answer == no:
				add(stepDenied, g.Begin, g.End)
			default:
				ends = min(ends, g.Begin)
			}
		}
		add(stepEnd, ends, max(ends, l.succeeded(leases)))
	}
	return steps
}

// succeeded returns a moment by which another client has certainly been granted the lock
// after this lease. Later than that, the end of this lease does not matter. This bound
// keeps the check fast.
func (l *lease) succeeded(leases []*lease) time.Duration {
	first := time.Duration(1<<63 - 1)
	at, _ := slices.BinarySearchFunc(leases, l.taken.End, func(o *lease, t time.Duration) int { return int(o.taken.Begin - t) })
	for _, o := range leases[at:] {
		if o.taken.Begin > first {
			break
		}
		if o.taken.Begin > l.taken.End {
			first = min(first, o.taken.End)
		}
	}
	return first
}

// pieces cuts a history at the moments when no call is running and the lock is free. Each
// piece can be checked alone.
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

// Check returns the violations in the clients' calls. The times of the calls count from
// began.
func Check(began time.Time, calls []Call) (wrong []Violation) {
	byKey := map[string][]*lease{}
	for _, l := range leasesOf(calls) {
		byKey[l.key] = append(byKey[l.key], l)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		leases := byKey[key]
		slices.SortFunc(leases, func(a, b *lease) int { return int(a.taken.Begin - b.taken.Begin) })
		wrong = append(wrong, overlaps(began, leases)...)
		for _, piece := range pieces(stepsOf(leases)) {
			if result := porcupine.CheckOperationsTimeout(leaseModel, piece, time.Minute); result != porcupine.Ok {
				wrong = append(wrong, Violation{began.Add(time.Duration(piece[len(piece)-1].Call)),
					fmt.Sprintf("porcupine says %s: no order of these fits one lock %s on one server:%s", result, key, describe(piece))})
			}
		}
	}
	return wrong
}

// overlaps finds two clients that could rely on the same lock at the same time.
func overlaps(began time.Time, leases []*lease) (wrong []Violation) {
	var holds []*Hold
	for _, l := range leases {
		from, to := l.held()
		holds = append(holds, &Hold{Key: l.key, Client: fmt.Sprint("client ", l.client), How: "as " + l.token, From: began.Add(from), To: began.Add(to)})
	}
	for _, c := range Conflicts(holds) {
		wrong = append(wrong, Violation{c.Second.From, c.In(func(t time.Time) string { return Stamp(t.Sub(began)) })})
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
		fmt.Fprintf(&b, "\n\t%s to %s %s", Stamp(time.Duration(s.Call)), Stamp(time.Duration(min(s.Return, int64(time.Hour)*1000))),
			leaseModel.DescribeOperation(s.Input, nil))
	}
	return b.String()
}
