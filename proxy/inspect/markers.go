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

// anotherSet is what to do about a master that belongs elsewhere.
const anotherSet = "list the masters as they belong together, or build another set from them (README, \"Another set from the same masters\")"

// markerFacts is what -check found at redlock.MarkerKey, in database 0.
type markerFacts struct {
	text   string // empty: there is none
	unread error  // nobody knows
	clock  time.Time
}

// markerLines say in plain words what each master's marker means; those that
// will keep a master from voting are hazards instead. Only -check needs it: a
// running proxy has the masters' own states.
func markerLines(cfg *config.Config, masters []Facts) (lines []string, found hazardList) {
	var unmarked []string
	for i, st := range surveyed(masters) {
		f := masters[i]
		title := fmt.Sprintf("%s (%s)", f.title, f.Name)
		_, marked := redlock.ReadMarker(f.marker.text)
		switch {
		case f.Err != nil:
		case f.marker.unread != nil:
			found.add(hazardAbsent, "marker", f.Name, "%s does not show its marker: %v", title, f.marker.unread)
		case f.marker.text == "" && !slices.ContainsFunc(masters, Facts.isMarked):
			unmarked = append(unmarked, title)
		case st.State == redlock.Certified:
			lines = append(lines, fmt.Sprintf("%s %s; it votes", title, f.remembers()))
		case st.State == redlock.Quarantined:
			found.add(hazardWarning, "quarantine", f.Name, "%s %s; in quarantine until %s by its own clock", title, f.remembers(), f.votesFrom())
		case st.State == redlock.Barred && marked:
			found.add(hazardAbsent, "marker", f.Name, "%s must not vote: %s; %s", title, st.Reason, anotherSet)
		case st.State == redlock.Barred:
			found.add(hazardAbsent, "marker", f.Name, "%s must not vote: %s", title, st.Reason)
		case marked:
			found.add(hazardWarning, "quarantine", f.Name, "%s %s; %s, and does not vote for %s", title, f.remembers(), st.Reason, quarantineOf(cfg))
		default:
			found.add(hazardWarning, "quarantine", f.Name, "%s was flushed, has lost its data or is new (%s), and does not vote for %s", title, st.Reason, quarantineOf(cfg))
		}
	}
	switch words := describeNewcomers(cfg, unmarked); {
	case len(unmarked) == 0:
	case cfg.NewSet:
		lines = append(lines, words)
	default:
		found.add(hazardWarning, kindNewSet, "", "%s, and does not vote for %s unless started with -new", words, config.ShortDuration(cfg.RestartDelay))
	}
	return lines, found
}

// surveyed is how the masters stand by what was found of them.
func surveyed(masters []Facts) []redlock.Standing {
	found := make([]redlock.Found, len(masters))
	for i, f := range masters {
		if f.marker.clock.IsZero() {
			f.marker.clock = time.Now() // it does not tell
		}
		found[i] = redlock.Found{
			Server: redlock.Server{Name: f.Name}, Reached: f.Err == nil && f.marker.unread == nil,
			Run: f.runID, Marker: f.marker.text, Clock: time.Duration(f.marker.clock.UnixNano()),
		}
	}
	return redlock.Survey(found)
}

func quarantineOf(cfg *config.Config) string {
	return fmt.Sprintf("%s, or the longest TTL granted, up to %s", config.ShortDuration(cfg.RestartDelay), config.ShortDuration(cfg.MaxQuarantine))
}

// isMarked tells whether the master belongs to a set.
func (f Facts) isMarked() bool {
	_, marked := redlock.ReadMarker(f.marker.text)
	return marked
}

// haveNoMarker tells whether all masters have answered and none belongs to a set.
func haveNoMarker(masters []Facts) bool {
	return len(masters) > 0 && !slices.ContainsFunc(masters, func(f Facts) bool {
		return f.Err != nil || f.marker.unread != nil || f.marker.text != ""
	})
}

// newSetPause is how long after a set began a process may still be started with
// -new, as several are that begin with it.
const newSetPause = time.Hour

// ErrSetExists says that -new was left in the start command. It would be said
// again, and found a new set that votes at once, when the masters have forgotten
// everything.
var ErrSetExists = errors.New("-new is for masters that have no history")

// newSetHazards find -new where a quorum of masters has had a set for a while.
func newSetHazards(cfg *config.Config, masters []Facts, now time.Time) (found hazardList) {
	members := map[string]int{}
	for _, f := range masters {
		m, marked := redlock.ReadMarker(f.marker.text)
		if !marked || !cfg.NewSet {
			continue
		}
		if members[m.Set]++; members[m.Set] != cfg.Masters.Quorum() || now.Sub(m.Founded) < newSetPause {
			continue
		}
		since := ""
		if !m.Founded.IsZero() {
			since = " since " + config.Timestamp(m.Founded)
		}
		found.add(hazardRefused, kindNewSet, "", "these masters belong to set %s%s; take -new out of the start command, where it would be said again after they have forgotten everything", m.Set, since)
	}
	return found
}

// kindNewSet is the kind of hazards about sets that are new, or said to be.
const kindNewSet = "new set"

// remembers says what the marker of a master that belongs to a set does.
func (f Facts) remembers() string {
	m, _ := redlock.ReadMarker(f.marker.text)
	words := fmt.Sprintf("is number %d of %d of set %s (epoch %d), ", m.Member, m.Members, m.Set, m.Epoch)
	if m.Since.UnixMilli() > 0 {
		words += "remembers everything since " + config.Timestamp(m.Since) + ", "
	}
	return words + "longest TTL granted " + config.ShortDuration(m.Longest)
}

// votesFrom is when its quarantine is over.
func (f Facts) votesFrom() string {
	m, _ := redlock.ReadMarker(f.marker.text)
	return config.Timestamp(m.Since.Add(m.Quarantine))
}

// describeNewcomers words the masters of a set that does not exist yet.
func describeNewcomers(cfg *config.Config, unmarked []string) string {
	who := strings.Join(unmarked, ", ") + " have no marker"
	switch {
	case len(unmarked) == 1:
		who = unmarked[0] + " has no marker"
	case len(unmarked) == cfg.Masters.Count():
		who = "no master has a marker"
	}
	return who + ": a new set begins when all masters are reached and none has one"
}
