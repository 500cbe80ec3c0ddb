package redlock

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	check "redlock-proxy/integration/history"
	"redlock-proxy/redlock/toymaster"
)

// A history says which client could rely on which lock, and when. Its times are those of
// the bubble's clock, which counts as true here. Masters have clocks of their own.
type history struct {
	holds    []*check.Hold
	failures []string
	subject  string // the key that the last of them is about; "": all
	counts   simCounts
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
	h.failures = append(h.failures, fmt.Sprintf(format, args...))
}

func (h *history) count(f func(c *simCounts)) { f(&h.counts) }

// begin notes that a client believes it holds the lock from now to end.
func (h *history) begin(key, client, how string, end time.Time) *check.Hold {
	now := time.Now()
	if !end.After(now) {
		h.fail("won without validity: %s has %s by %s until %v before now", client, key, how, now.Sub(end))
	}
	x := &check.Hold{Key: key, Client: client, How: how, From: now, To: end}
	h.holds = append(h.holds, x)
	return x
}

func clock(t time.Time) string { return t.Format("05.000000") }

// conflicts checks the finished history.
func (h *history) conflicts() []check.Conflict { return check.Conflicts(h.holds) }

// text returns the whole history, to compare two runs of one seed.
func (h *history) text() string {
	var b []byte
	for _, x := range h.holds {
		b = fmt.Appendf(b, "%s %s %s %s %s\n", x.Key, x.Client, x.How, x.From.Format("05.000000000"), x.To.Format("05.000000000"))
	}
	return fmt.Sprintf("%s%+v\n%q\n", b, h.counts, h.failures)
}

// A simLog records the faults, what clients hear, and what the masters execute.
type simLog struct {
	lines []simLine
	sum   io.Writer // is told all instead of lines; nil: lines
}

// A simLine is one of these. Its text is made when somebody reads it.
type simLine struct {
	at   time.Time
	text fmt.Stringer
	key  string // "": it is about all
}

type fact string

func (f fact) String() string { return string(f) }

func (l *simLog) add(x simLine) {
	if l.sum == nil {
		l.lines = append(l.lines, x)
	} else {
		fmt.Fprintln(l.sum, x.at.UnixNano(), x.text)
	}
}

func (l *simLog) note(format string, args ...any) {
	if l != nil {
		l.add(simLine{at: time.Now(), text: fact(fmt.Sprintf(format, args...))})
	}
}

// tell notes what a client does.
func (l *simLog) tell(c *simClient, format string, args ...any) {
	if l != nil {
		text := fact(c.name + ": " + fmt.Sprintf(format, args...))
		l.add(simLine{at: time.Now(), text: text, key: string(c.lock)})
	}
}

// execution notes a command. Those that only look at a master's own state are about no key.
func (l *simLog) execution(x toymaster.Execution) {
	if l.sum != nil {
		b := strconv.AppendInt(make([]byte, 0, 256), x.At.UnixNano(), 10)
		b = append(append(append(b, x.Master...), x.Client...), '\n')
		for _, a := range x.Args {
			b = append(append(b, a...), '\n')
		}
		l.sum.Write(append(b, x.Reply...))
		return
	}
	name, key := string(x.Args[0]), "-"
	switch {
	case name == "CLIENT" && string(x.Args[1]) == "KILL":
		key = ""
	case (name == "EVAL" || name == "EVALSHA") && len(x.Args) > 3:
		key = string(x.Args[3])
	case name == "EXEC":
		key = "*" // of those queued before
	case len(x.Args) == 1 || name == "CLIENT" || name == "INFO" || string(x.Reply) == "+QUEUED\r\n":
	default:
		key = string(x.Args[1])
	}
	l.lines = append(l.lines, simLine{at: x.At, text: x, key: key})
}

// text returns all lines, to compare two runs of one seed.
func (l *simLog) text() string {
	var b []byte
	for _, x := range l.lines {
		b = fmt.Appendf(b, "%s %s\n", x.at.Format("05.000000000"), x.text)
	}
	return string(b)
}

// about tells what happened about a key until a time. What several masters executed alike, between two
// other lines, is one line.
func (l *simLog) about(key string, began, until time.Time) (lines []string) {
	type alike struct{ times, masters, text string }
	var block []*alike
	tell := func() {
		for _, x := range block {
			lines = append(lines, fmt.Sprintf("%s    %s: %s", x.times, x.masters, x.text))
		}
		block = nil
	}
	for _, line := range l.lines {
		if line.at.After(until) || line.key != "" && line.key != key {
			continue
		}
		at := fmt.Sprintf("%9.3f ms", line.at.Sub(began).Seconds()*1000)
		x, executed := line.text.(toymaster.Execution)
		if !executed {
			tell()
			lines = append(lines, at+"  "+line.text.String())
			continue
		}
		proxy, _, _ := strings.Cut(x.Client, ".")
		reply := strings.ReplaceAll(strings.TrimSpace(string(x.Reply)), "\r\n", " ")
		text := fmt.Sprintf("%s from %s, answered %s", summary(x.Args), proxy, reply)
		if i := slices.IndexFunc(block, func(b *alike) bool { return b.text == text }); i >= 0 {
			block[i].masters += " " + x.Master
		} else {
			block = append(block, &alike{at, x.Master, text})
		}
	}
	tell()
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, " has this as token ", "'s token ")
	}
	return lines
}
