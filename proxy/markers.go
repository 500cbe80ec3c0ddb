package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock"
)

// anotherSet is what to do about a master that belongs elsewhere.
const anotherSet = "it will not vote; list the masters as they belong together, or build another set from them (README, \"Another set from the same masters\")"

// markerFacts is what -check found at redlock.MarkerKey, in database 0.
type markerFacts struct {
	text   string // empty: there is none
	unread error  // nobody knows
	clock  time.Time
}

// markerLines say in plain words what each master's marker means; those that
// will keep a master from voting are hazards instead. They judge as redlock
// does, from a distance: only -check needs it, a running proxy has the masters'
// own states.
func markerLines(cfg *Config, masters []serverFacts) (lines []string, found hazardList) {
	set := commonSet(masters)
	var unmarked []string
	for i, f := range masters {
		if f.err != nil {
			continue
		}
		title := fmt.Sprintf("%s (%s)", f.title, f.name)
		if set == "" && f.marker.text == "" && f.marker.unread == nil {
			unmarked = append(unmarked, title)
			continue
		}
		words, level, kind := f.describeMarker(cfg, i+1, set)
		if kind == "" {
			lines = append(lines, title+" "+words)
		} else {
			found.add(level, kind, f.name, "%s %s", title, words)
		}
	}
	switch words := describeNewcomers(cfg, unmarked); {
	case len(unmarked) == 0:
	case cfg.NewSet:
		lines = append(lines, words)
	default:
		found.add(hazardWarning, kindNewSet, "", "%s, and does not vote for %s unless started with -new", words, shortDuration(cfg.RestartDelay))
	}
	return lines, found
}

// haveNoMarker tells whether all masters have answered and none belongs to a set.
func haveNoMarker(masters []serverFacts) bool {
	return len(masters) > 0 && !slices.ContainsFunc(masters, func(f serverFacts) bool {
		return f.err != nil || f.marker.unread != nil || f.marker.text != ""
	})
}

// commonSet is the set that most masters belong to; empty if none has a marker.
func commonSet(masters []serverFacts) string {
	counts := map[string]int{}
	best := ""
	for _, f := range masters {
		if m, ok := redlock.ReadMarker(f.marker.text); ok {
			counts[m.Set]++
			if counts[m.Set] > counts[best] {
				best = m.Set
			}
		}
	}
	return best
}

// newSetPause is how long after a set began a process may still be started with
// -new, as several are that begin with it.
const newSetPause = time.Hour

// ErrSetExists says that -new was left in the start command. It would be said
// again, and found a new set that votes at once, when the masters have forgotten
// everything.
var ErrSetExists = errors.New("-new is for masters that have no history")

// newSetHazards find -new where a quorum of masters has had a set for a while.
func newSetHazards(cfg *Config, masters []serverFacts, now time.Time) (found hazardList) {
	set, members := commonSet(masters), 0
	var began time.Time
	for _, f := range masters {
		if m, ok := redlock.ReadMarker(f.marker.text); ok && m.Set == set {
			members, began = members+1, m.Founded
		}
	}
	if !cfg.NewSet || members < cfg.Masters.quorum() || now.Sub(began) < newSetPause {
		return nil
	}
	since := ""
	if !began.IsZero() {
		since = " since " + timestamp(began)
	}
	found.add(hazardRefused, kindNewSet, "", "these masters belong to set %s%s; take -new out of the start command, where it would be said again after they have forgotten everything", set, since)
	return found
}

// kindNewSet is the kind of hazards about sets that are new, or said to be.
const kindNewSet = "new set"

// describeMarker also says how bad it is; no kind: it is not.
func (f serverFacts) describeMarker(cfg *Config, number int, set string) (words string, level hazardLevel, kind string) {
	m, ok := redlock.ReadMarker(f.marker.text)
	quarantine := fmt.Sprintf("%s, or the longest TTL granted, up to %s", shortDuration(cfg.RestartDelay), shortDuration(cfg.MaxQuarantine))
	until := m.Since.Add(m.Quarantine)
	switch {
	case f.marker.unread != nil:
		return "does not show its marker: " + f.marker.unread.Error(), hazardAbsent, "marker"
	case f.marker.text == "":
		return "has no marker while others of its set have: it was flushed, has lost its data or is new, and does not vote for " + quarantine, hazardWarning, "quarantine"
	case !ok:
		return "has a key " + redlock.MarkerKey + " that is no marker of this version; delete it if no other program needs it", hazardAbsent, "marker"
	case m.Set != set:
		return fmt.Sprintf("belongs to another set of masters (%s, most belong to %s): %s", m.Set, set, anotherSet), hazardAbsent, "marker"
	case m.Members != cfg.Masters.count():
		return fmt.Sprintf("is one of %d masters of its set (%s), and %d are configured: %s", m.Members, m.Set, cfg.Masters.count(), anotherSet), hazardAbsent, "marker"
	case m.Member != number:
		return fmt.Sprintf("is number %d of its set (%s) and configured as number %d: the list is in another order, or two names lead to one server; %s", m.Member, m.Set, number, anotherSet), hazardAbsent, "marker"
	}
	words = fmt.Sprintf("is number %d of %d of set %s (epoch %d), ", m.Member, m.Members, m.Set, m.Epoch)
	if m.Since.UnixMilli() > 0 {
		words += "remembers everything since " + timestamp(m.Since) + ", "
	}
	words += "longest TTL granted " + shortDuration(m.Longest)
	switch {
	case f.runID != "" && m.Run != f.runID:
		return words + "; it has restarted since, and does not vote for " + quarantine, hazardWarning, "quarantine"
	case f.marker.clock.Before(until):
		return words + "; in quarantine until " + timestamp(until) + " by its own clock", hazardWarning, "quarantine"
	}
	return words + "; it votes", 0, ""
}

// describeNewcomers words the masters of a set that does not exist yet.
func describeNewcomers(cfg *Config, unmarked []string) string {
	who := strings.Join(unmarked, ", ") + " have no marker"
	switch {
	case len(unmarked) == 1:
		who = unmarked[0] + " has no marker"
	case len(unmarked) == cfg.Masters.count():
		who = "no master has a marker"
	}
	return who + ": a new set begins when all masters are reached and none has one"
}
