package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/redlock"
)

// anotherSet tells the operator what to do about a master that belongs to another set.
const anotherSet = "list the masters as they belong together, or build another set from them (deploy/RUN.md#another-set-from-the-same-masters)"

// markerFacts are the facts about a master's marker, from redlock.MarkerKey in database 0.
type markerFacts struct {
	text   string    // empty: there is none
	unread error     // why the marker could not be read
	clock  time.Time // of the master; zero: unknown
}

// recorded returns how many masters the set has, by the markers of the listed ones. It returns the number of listed ones
// if there is no set, if markers contradict each other or the list, or if the list has too few: a reload leaves three.
func recorded(masters []Facts) int {
	set, members := "", len(masters)
	for i, f := range masters {
		m, marked := redlock.ReadMarker(f.marker.text)
		switch {
		case !marked:
		case m.Member != i+1 || set != "" && (m.Set != set || m.Members != members):
			return len(masters)
		default:
			set, members = m.Set, m.Members
		}
	}
	if len(masters) < min(3, members) {
		return len(masters)
	}
	return members
}

// changeOfNumber tells the operator how to reload to a list that is longer or shorter than the set. It returns "" for
// any other list.
func (a Answers) changeOfNumber() string {
	from, to := recorded(a.Masters), len(a.Masters)
	steps := max(from-to, to-from)
	text := fmt.Sprintf("this is a change from %d to %d masters: ok to reload", from, to)
	switch {
	case steps == 0:
		return ""
	case steps > 1:
		text = fmt.Sprintf("this is a change from %d to %d masters, one server a reload", from, to)
	}
	for i := from; i < to; i++ {
		text += fmt.Sprintf("; %s is added", a.Masters[i].called())
	}
	if from > to {
		text += "; what the list lacks at its end is removed"
	}
	if steps > 1 {
		text += fmt.Sprintf("; ok to reload with %d masters now, and with the next one each time that REDLOCK STATUS speaks of no next change any more", from+(to-from)/steps)
	}
	return text + "; start no proxy with this list before its reload (deploy/RUN.md#another-number-of-masters)"
}

// markerLines describes in plain words what each master's marker means. It returns a
// hazard instead of a line if the marker keeps the master from voting. Only -check needs
// it, because a running proxy has the masters' states.
func (a Answers) markerLines() (lines []string, found hazardList) {
	cfg := a.Config
	quarantine := fmt.Sprintf("%s, or the longest TTL granted, up to %s", config.ShortDuration(cfg.RestartDelay), config.ShortDuration(cfg.MaxQuarantine))
	var unmarked []string
	if change := a.changeOfNumber(); change != "" {
		lines = append(lines, change)
	}
	members := recorded(a.Masters)
	for i, st := range statesOf(a.Masters) {
		f := a.Masters[i]
		m, marked := redlock.ReadMarker(f.marker.text)
		add := func(level hazardLevel, kind, format string, values ...any) {
			found.add(level, kind, f.Name, "%s "+format, append([]any{f.called()}, values...)...)
		}
		switch remembers := describeMarker(m); {
		case f.Err != nil, i >= members: // a reload adds it
		case f.marker.unread != nil:
			add(hazardAbsent, "marker", "did not return its marker: %v (deploy/INCIDENTS.md#rejected)", f.marker.unread)
		case f.marker.text == "" && !slices.ContainsFunc(a.Masters, Facts.isMarked):
			unmarked = append(unmarked, f.called())
		case f.isReplica(), f.mayEvict() && !marked && st.State == redlock.Starting:
			// Hazards says why it does not vote. A replica has its master's marker.
		case st.State == redlock.Voting && f.mayEvict():
			lines = append(lines, f.called()+" "+remembers)
		case st.State == redlock.Voting:
			lines = append(lines, f.called()+" "+remembers+"; it votes")
		case st.State == redlock.Quarantined:
			add(hazardWarning, "quarantine", "%s; in quarantine until %s by its own clock (deploy/INCIDENTS.md#quarantined)", remembers, config.Timestamp(m.Since.Add(m.Quarantine)))
		case st.State == redlock.Rejected && marked:
			add(hazardAbsent, "marker", "must not vote: %s; %s", st.Reason, anotherSet)
		case st.State == redlock.Rejected:
			add(hazardAbsent, "marker", "must not vote: %s", st.Reason)
		case marked:
			add(hazardWarning, "quarantine", "%s; %s, and does not vote for %s (deploy/INCIDENTS.md#quarantined)", remembers, st.Reason, quarantine)
		default:
			add(hazardWarning, "quarantine", "was flushed, has lost its data or is new (%s), and does not vote for %s; if it is new: %s", st.Reason, quarantine, redlock.TellAll)
		}
	}
	if len(unmarked) > 0 {
		who := strings.Join(unmarked, ", ") + " have no marker"
		switch len(unmarked) {
		case cfg.Masters.Count():
			who = "no master has a marker"
		case 1:
			who = unmarked[0] + " has no marker"
		}
		who += ": a new set begins when all masters are reached and none has one"
		if cfg.NewSet {
			return append(lines, who), found
		}
		found.add(hazardWarning, kindNewSet, "", "%s, and does not vote for %s unless started with -new", who, config.ShortDuration(cfg.RestartDelay))
	}
	return lines, found
}

// statesOf returns the state of each master according to its facts, in a set of as many as are recorded.
func statesOf(masters []Facts) []redlock.Standing {
	found := make([]redlock.Found, recorded(masters))
	for i, f := range masters[:min(len(masters), len(found))] {
		if f.marker.clock.IsZero() {
			f.marker.clock = time.Now() // the best guess if the master's is unknown
		}
		found[i] = redlock.Found{
			Server: redlock.Server{Name: f.Name}, Reached: f.Err == nil && f.marker.unread == nil,
			Run: f.RunID, Marker: f.marker.text, Clock: time.Duration(f.marker.clock.UnixNano()),
		}
	}
	states := redlock.Survey(found)
	for len(states) < len(masters) {
		states = append(states, redlock.Standing{State: redlock.Starting})
	}
	return states[:len(masters)]
}

// isMarked tells whether the master belongs to a set.
func (f Facts) isMarked() bool {
	_, marked := redlock.ReadMarker(f.marker.text)
	return marked
}

// NoMarkers tells whether all masters have answered and none has a marker.
func (a Answers) NoMarkers() bool {
	return len(a.Masters) > 0 && !slices.ContainsFunc(a.Masters, func(f Facts) bool {
		return f.Err != nil || f.marker.unread != nil || f.marker.text != ""
	})
}

// newSetPause is the time after a set began in which a process may start with -new.
// Several processes that begin with a set all start with -new.
const newSetPause = time.Hour

// ErrSetExists means that -new was left in the start command. If the masters later
// forgot everything, such a command would start a new set that votes at once.
var ErrSetExists = errors.New("-new is for masters that have no history")

// takeNewOut tells the operator what to do about -new.
const takeNewOut = "take -new out of the start command, because a later start would use it again after they have forgotten everything"

// newSet reports -new if a quorum of masters has belonged to one set for newSetPause.
func (l *hazardList) newSet(a Answers, now time.Time) {
	members := map[string]int{}
	for _, f := range a.Masters {
		m, marked := redlock.ReadMarker(f.marker.text)
		if !marked || !a.Config.NewSet {
			continue
		}
		if members[m.Set]++; members[m.Set] != a.Config.Masters.Quorum() || now.Sub(m.Founded) < newSetPause {
			continue
		}
		since := ""
		if !m.Founded.IsZero() {
			since = " since " + config.Timestamp(m.Founded)
		}
		l.add(hazardRefused, kindNewSet, "", "these masters belong to set %s%s; %s", m.Set, since, takeNewOut)
	}
}

// kindNewSet is the kind of hazards about new sets and about -new.
const kindNewSet = "new set"

// describeMarker describes the marker of a master that belongs to a set.
func describeMarker(m redlock.MarkerFacts) string {
	words := fmt.Sprintf("is number %d of %d of set %s (epoch %d), ", m.Member, m.Members, m.Set, m.Epoch)
	if m.Since.UnixMilli() > 0 {
		words += "remembers everything since " + config.Timestamp(m.Since) + ", "
	}
	return words + "longest TTL granted " + config.ShortDuration(m.Longest)
}
