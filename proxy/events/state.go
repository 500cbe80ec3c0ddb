package events

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock"
)

// A State is the state of the masters at one moment. Its methods make each sentence about it that people
// read: in the log, /readyz, INFO, REDLOCK and on the page.
type State struct {
	redlock.Status
	Masters, Others []Master // those of Status, with what this process remembers of them
}

// A Master is one master.
type Master struct {
	redlock.MasterStatus
	Since              time.Time     // it has this state; zero: unknown
	VoteMean, VoteMost time.Duration // how long its votes took in the last minute; 0: it did not vote
}

// Count returns the number of masters with one of these states.
func (s State) Count(states ...redlock.MasterState) (n int) {
	for _, m := range s.Status.Masters {
		if slices.Contains(states, m.State) {
			n++
		}
	}
	return n
}

// Voting returns the number of masters that vote.
func (s State) Voting() int { return s.Count(redlock.Voting) }

// Quorum is a line like: 4 of 5 lock masters vote, 3 needed.
func (s State) Quorum() string {
	return fmt.Sprintf("%d of %d lock masters vote, %d needed", s.Voting(), len(s.Status.Masters), s.Needed)
}

// Lines are a line about the quorum, and one for each master that does not vote. They name these masters
// also if the others suffice: one more failure may then end the quorum.
func (s State) Lines() []string {
	lines := []string{s.Quorum()}
	if !s.Ready() {
		lines[0] += " (deploy/INCIDENTS.md#quorumlost)"
		if s.Reason != "" {
			lines = append(lines, s.Reason)
		}
	}
	if !s.NewUntil.IsZero() {
		lines = append(lines, redlock.NewSetNotice(s.NewUntil))
	}
	return append(lines, s.Missing()...)
}

// Missing has a line for each master that does not vote.
func (s State) Missing() (lines []string) {
	for _, m := range s.Masters {
		if m.State != redlock.Voting {
			lines = append(lines, m.line())
		}
	}
	return lines
}

// Changes says what the operator has to do after a change of the masters, when the next one may come, and which servers
// do not count.
func (s State) Changes() (lines []string) {
	if !s.NextChange.IsZero() {
		next := fmt.Sprintf("the next change of the lock masters may come at %s, if all vote then", s.NextChange.UTC().Format(time.RFC3339))
		if s.TellAll {
			next = "the lock masters were changed: " + redlock.TellAll + "; " + next
		}
		lines = append(lines, next)
	}
	for _, m := range s.Others {
		lines = append(lines, "not counted: "+m.line())
	}
	return lines
}

// Absent continues a sentence with the masters that do not vote, by their numbers.
func (s State) Absent() (text string) {
	separator := "; "
	for i, m := range s.Masters {
		if m.State == redlock.Voting {
			continue
		}
		text += fmt.Sprintf("%smaster %d is %s", separator, i+1, m.State)
		separator = ", "
		const clock = "15:04:05Z" // of this day
		if !m.Until.IsZero() {
			text += " until " + m.Until.UTC().Format(clock)
		} else if !m.Since.IsZero() {
			text += " since " + m.Since.UTC().Format(clock)
		}
	}
	return text
}

// All are the masters that count, and behind them the others, whose reasons say so.
func (s State) All() []Master {
	all := slices.Concat(s.Masters, s.Others)
	for i := len(s.Masters); i < len(all); i++ {
		all[i].Reason = phrase("it is not counted", all[i].Reason)
	}
	return all
}

// line is like: 10.0.0.1:6379 is quarantined until 2026-11-21T05:10:00Z: it may have forgotten locks.
func (m Master) line() string {
	text := m.Name + " is " + m.State.String()
	if !m.Until.IsZero() {
		text += " until " + timestamp(m.Until)
	}
	text = phrase(text, m.Reason)
	if m.State != redlock.Voting {
		text += " (" + runbooks[m.State] + ")"
	}
	return text
}

// runbooks say what to do about a master that does not vote.
var runbooks = map[redlock.MasterState]string{
	redlock.Starting:    "deploy/INCIDENTS.md#starting",
	redlock.Quarantined: "deploy/INCIDENTS.md#quarantined",
	redlock.Rejected:    "deploy/INCIDENTS.md#rejected",
	redlock.Unreachable: "deploy/INCIDENTS.md#unreachable",
}

// Info is the master in INFO. The reason is last, because it may contain commas.
func (m Master) Info() string {
	text := "name=" + m.Name + ",state=" + m.State.String()
	if !m.Until.IsZero() {
		text += ",until=" + timestamp(m.Until)
	}
	if m.Reason != "" {
		text += ",reason=" + Printable(m.Reason)
	}
	return text
}

// phrase is a text and, if there is one, the reason for it.
func phrase(text, reason string) string { return strings.TrimSuffix(text+": "+reason, ": ") }

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Printable replaces control characters, so that a server's text cannot break a line of INFO.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}
