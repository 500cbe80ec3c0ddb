package redlock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A history says which client could rely on which lock, and when. Its times are those of
// the bubble's clock, which counts as true here. Masters have clocks of their own.
type history struct {
	mu       sync.Mutex
	holds    []*holding
	failures []string
	counts   simCounts
}

// A holding is the time for which a client uses a lock: from the verdict until the
// validity ends or the release begins. Only its client changes it.
type holding struct {
	key    string
	client string
	how    string
	from   time.Time
	to     time.Time
}

// simCounts shows that a simulation did something at all.
type simCounts struct {
	won, lost, noQuorum       int
	released, extended, gotBy int
}

func (c *simCounts) add(d simCounts) {
	c.won += d.won
	c.lost += d.lost
	c.noQuorum += d.noQuorum
	c.released += d.released
	c.extended += d.extended
	c.gotBy += d.gotBy
}

func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	h.failures = append(h.failures, fmt.Sprintf(format, args...))
	h.mu.Unlock()
}

func (h *history) count(f func(c *simCounts)) {
	h.mu.Lock()
	f(&h.counts)
	h.mu.Unlock()
}

// begin notes that a client believes it holds the lock from now to end.
func (h *history) begin(key, client, how string, end time.Time) *holding {
	now := time.Now()
	if !end.After(now) {
		h.fail("won without validity: %s has %s by %s until %v before now", client, key, how, now.Sub(end))
	}
	x := &holding{key: key, client: client, how: how, from: now, to: end}
	h.mu.Lock()
	h.holds = append(h.holds, x)
	h.mu.Unlock()
	return x
}

// A conflict is two clients that relied on one lock at the same time.
type conflict struct{ first, second *holding }

func (c conflict) String() string {
	return fmt.Sprintf("two holders of %s: %s by %s from %s to %s, and %s by %s from %s to %s", c.first.key,
		c.first.client, c.first.how, clock(c.first.from), clock(c.first.to),
		c.second.client, c.second.how, clock(c.second.from), clock(c.second.to))
}

func clock(t time.Time) string { return t.Format("05.000000") }

// conflicts checks the finished history.
func (h *history) conflicts() []conflict {
	slices.SortFunc(h.holds, func(a, b *holding) int {
		return cmp.Or(cmp.Compare(a.key, b.key), a.from.Compare(b.from))
	})
	var found []conflict
	for i, x := range h.holds {
		for _, y := range h.holds[i+1:] {
			if y.key != x.key || !y.from.Before(x.to) {
				break
			}
			if y.to.After(y.from) {
				found = append(found, conflict{x, y})
			}
		}
	}
	return found
}

// text returns the whole history, to compare two runs of one seed.
func (h *history) text() string {
	var b []byte
	for _, x := range h.holds {
		b = fmt.Appendf(b, "%s %s %s %s %s\n", x.key, x.client, x.how, x.from.Format("05.000000000"), x.to.Format("05.000000000"))
	}
	return fmt.Sprintf("%s%+v\n%q\n", b, h.counts, h.failures)
}

// A simLog records the faults and what the masters executed.
type simLog struct {
	mu    sync.Mutex
	lines []simLine
}

// A simLine is a fault or an execution. Its text is made when somebody reads it.
type simLine struct {
	at   time.Time
	text fmt.Stringer
	key  string
}

type fault string

func (f fault) String() string { return string(f) }

func (l *simLog) note(format string, args ...any) {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.lines = append(l.lines, simLine{at: time.Now(), text: fault(fmt.Sprintf(format, args...))})
	l.mu.Unlock()
}

func (l *simLog) execution(x execution) {
	name := string(x.args[0])
	key := ""
	switch {
	case name == "CLIENT" && string(x.args[1]) == "KILL":
	case (name == "EVAL" || name == "EVALSHA") && len(x.args) > 3:
		key = string(x.args[3])
	case name == "EXEC":
		key = "*" // of those queued before
	case len(x.args) == 1 || name == "CLIENT" || name == "INFO" || string(x.reply) == "+QUEUED\r\n":
		return
	default:
		key = string(x.args[1])
	}
	if key == MarkerKey {
		return
	}
	l.mu.Lock()
	l.lines = append(l.lines, simLine{at: x.at, text: x, key: key})
	l.mu.Unlock()
}

// about returns the first lines about a conflict's key.
func (l *simLog) about(c conflict, most int) []string {
	var lines []string
	for _, x := range l.lines {
		if x.at.Before(c.first.from.Add(-60*time.Millisecond)) || x.at.After(c.second.from.Add(60*time.Millisecond)) {
			continue
		}
		text := x.text.String()
		if x.key == "" || x.key == "*" && strings.Contains(text, c.first.client) || x.key == c.first.key {
			lines = append(lines, clock(x.at)+" "+text)
		}
	}
	return lines[:min(len(lines), most)]
}
