package members

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A course is what processes have done so far. All records are of masters whose records only grow.
type course struct {
	met           []string    // the records that processes and masters can have, in order
	top           string      // the latest record that an exact quorum had
	decided       [][2]string // the decisions: the records before and after them
	adds, removes int         // the wishes that are left
	story         []string    // for the log
}

// Any process may keep a record that it made for itself, and show it at any time. Of two records that
// exact quorums had, one comes after the other. An addition is dropped after a hold. By then all that
// others had made is on record, so the drop is on record before more comes.
func TestNoStepContradictsADecision(t *testing.T) {
	for _, wishes := range [][2]int{{1, 1}, {2, 0}, {0, 2}, {2, 1}} {
		start := course{met: []string{"1 1 1 1"}, top: "1 1 1 1", adds: wishes[0], removes: wishes[1]}
		seen, queue, steps := map[string]bool{}, []course{start}, map[string]bool{}
		for len(queue) > 0 {
			c := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			if wrong := c.contradiction(); wrong != "" {
				t.Fatalf("%s\n%s", wrong, strings.Join(c.story, "\n"))
			}
			for _, next := range c.next(steps) {
				if key := fmt.Sprint(next.met, next.top, next.decided, next.adds, next.removes); !seen[key] {
					seen[key] = true
					queue = append(queue, next)
				}
			}
		}
		t.Logf("%d additions and %d removals: %d courses with %d steps", wishes[0], wishes[1], len(seen), len(steps))
	}
}

func read(record string) List { return strings.Fields(record) }

func isAfter(l, before List) bool { return slices.Equal(l.Together(before), l) }

// next returns the courses with one more step.
func (c course) next(steps map[string]bool) (all []course) {
	for _, record := range c.met {
		l := read(record)
		if l.IsProposed() {
			all = append(all, c.with(l, l.Withdraw(), "is withdrawn to"))
		}
		if !isAfter(l, read(c.top)) {
			continue
		}
		_, changing := l.Changing()
		if !changing && c.adds > 0 {
			n := c.with(l, l.Add(Member{Epoch: 2, Name: "e"}), "shall have one more:")
			n.adds, n.top = c.adds-1, record
			all = append(all, n)
		}
		if !changing && c.removes > 0 {
			n := c.with(l, l.Remove(), "shall have one less:")
			n.removes, n.top = c.removes-1, record
			all = append(all, n)
		}
		d, ok := l.Next()
		if !ok {
			continue
		}
		steps[record] = true
		n := c.with(l, d.Members, "is followed by")
		n.top = record
		if d.Held && d.Members.Stage(d.Place).Step == Absent {
			n.top = text(d.Members)
		}
		if one := [2]string{record, text(d.Members)}; d.Members.Counting() != l.Counting() && !slices.Contains(c.decided, one) {
			n.decided = append(slices.Clone(c.decided), one)
		}
		all = append(all, n)
	}
	return all
}

// with returns the course after a process has made another record of one.
func (c course) with(l, made List, how string) course {
	c.story = append(slices.Clone(c.story), fmt.Sprintf("%v %s %v", l, how, made))
	for _, other := range c.met {
		if both := text(read(other).Together(made)); !slices.Contains(c.met, both) {
			c.met = append(slices.Clone(c.met), both)
		}
	}
	slices.Sort(c.met)
	return c
}

// contradiction tells how somebody may count otherwise than a decision says. Whoever has read the
// record before the decision must count no votes before it has read the decision.
func (c course) contradiction() string {
	for _, one := range c.decided {
		before, after := read(one[0]), read(one[1])
		for _, record := range c.met {
			l := read(record)
			if with := l.Together(before); !with.IsFrozen() && !isAfter(with, after) {
				return fmt.Sprintf("%v is decided, and %v counts %d", after, with, with.Counting())
			}
			with := l.Together(after)
			if with.Counting() != after.Counting() && !with.IsFrozen() && !slices.ContainsFunc(c.decided, func(later [2]string) bool {
				return later != one && isAfter(with, read(later[1])) && isAfter(read(later[1]), after)
			}) {
				return fmt.Sprintf("%v is decided, and %v counts %d", after, with, with.Counting())
			}
		}
	}
	return ""
}
