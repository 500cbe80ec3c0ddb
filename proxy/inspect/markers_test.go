package inspect

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/redlock"
)

const testMarker = "redlock-proxy/2 db=0 set=abc member=%d/3 epoch=2 joined=1,1,2@m3:6379 replid=- run=run-id-of-%d since=%d quarantine=30000 longest=90000 before=60000 turned=0"

// -check describes in plain words what each master's marker means, and whether it keeps
// the master from voting.
func TestMarkerLines(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 10, 0, 0, time.UTC)
	marker := func(number int, since time.Time) string {
		return fmt.Sprintf(testMarker, number, number, since.UnixMilli())
	}
	const another = `list the masters as they belong together, or build another set from them (deploy/RUN.md#another-set-from-the-same-masters)`
	const quarantine = "30s, or the longest TTL granted, up to 10m"
	for _, row := range []struct {
		name   string
		change func(cfg *config.Config, m *Facts) // master 2
		want   string
		level  hazardLevel
		kind   string
	}{
		{"in order", nil, "is number 2 of 3 of set abc (epoch 2), remembers everything since 2026-11-20T05:10:00Z, longest TTL granted 1m30s; it votes", 0, ""},
		{"from the beginning", func(_ *config.Config, m *Facts) { m.marker.text = marker(2, time.UnixMilli(0)) },
			"is number 2 of 3 of set abc (epoch 2), longest TTL granted 1m30s; it votes", 0, ""},
		{"in quarantine", func(_ *config.Config, m *Facts) { m.marker.text = marker(2, now.Add(-10*time.Second)) },
			"is number 2 of 3 of set abc (epoch 2), remembers everything since 2026-11-21T05:09:50Z, longest TTL granted 1m30s; in quarantine until 2026-11-21T05:10:20Z by its own clock (deploy/INCIDENTS.md#quarantined)", hazardWarning, "quarantine"},
		{"restarted", func(_ *config.Config, m *Facts) { m.RunID = "another" },
			"is number 2 of 3 of set abc (epoch 2), remembers everything since 2026-11-20T05:10:00Z, longest TTL granted 1m30s; it has been restarted, and does not vote for " + quarantine + " (deploy/INCIDENTS.md#quarantined)", hazardWarning, "quarantine"},
		{"without a marker", func(_ *config.Config, m *Facts) { m.marker.text = "" },
			"was flushed, has lost its data or is new (its marker is missing), and does not vote for " + quarantine + "; if it is new: " + redlock.TellAll, hazardWarning, "quarantine"},
		{"of another set", func(_ *config.Config, m *Facts) {
			m.marker.text = strings.Replace(m.marker.text, "abc", "xyz", 1)
		},
			"must not vote: it belongs to another set of masters (xyz, not abc); " + another, hazardAbsent, "marker"},
		{"of another number", func(_ *config.Config, m *Facts) { m.marker.text = marker(3, now) },
			"must not vote: it is number 3 of its set and configured as number 2: either two names lead to one server, or the list is in another order than in another proxy; " + another, hazardAbsent, "marker"},
		{"of five", func(_ *config.Config, m *Facts) {
			m.marker.text = strings.NewReplacer("2/3", "2/5", "joined=1,1", "joined=1,1,1,1").Replace(m.marker.text)
		}, "must not vote: its set has 5 masters by its marker, and 3 by the list or by other markers; only a reload changes their number; " + another, hazardAbsent, "marker"},
		{"somebody's key", func(_ *config.Config, m *Facts) { m.marker.text = "hello" },
			"must not vote: its key redlock-proxy:master is no marker; delete it if no other program needs it, or correct the address if another proxy listens there", hazardAbsent, "marker"},
		{"not shown", func(_ *config.Config, m *Facts) { m.marker = markerFacts{unread: errors.New("NOPERM")} },
			"did not return its marker: NOPERM (deploy/INCIDENTS.md#rejected)", hazardAbsent, "marker"},
	} {
		cfg, _, masters := testServers(3)
		for i := range masters {
			masters[i].marker = markerFacts{text: marker(i+1, now.Add(-24*time.Hour)), clock: now}
		}
		if row.change != nil {
			row.change(cfg, &masters[1])
		}
		lines, found := Answers{Config: cfg, Masters: masters}.markerLines()
		want := "master 2 (m2:6379) " + row.want
		switch {
		case row.kind == "" && (len(found) > 0 || len(lines) != 3 || lines[1] != want):
			t.Errorf("%s:\n got %q %v\nwant %q", row.name, lines, found, want)
		case row.kind != "" && (len(lines) != 2 || len(found) != 1 ||
			found[0] != Hazard{row.level, events.Hazard{Kind: row.kind, Server: "m2:6379"}, want}):
			t.Errorf("%s:\n got %q %+v\nwant %q", row.name, lines, found, want)
		}
	}
}

// One warning is enough for a master that must not vote for another reason than its marker.
func TestOneReasonIsEnough(t *testing.T) {
	const title = "master 2 (m2:6379) "
	const replica = title + "is a replica, so it must not vote: its own master can overwrite its data; list independent servers"
	const evicts = title + "may evict locks when its memory is full (maxmemory-policy allkeys-lru), so it does not vote; set noeviction"
	for _, row := range []struct{ role, policy, marker, want string }{
		{"slave", "noeviction", "", replica},
		{"slave", "noeviction", fmt.Sprintf(testMarker, 1, 1, 0), replica},
		{"master", "allkeys-lru", "", evicts},
		{"master", "allkeys-lru", fmt.Sprintf(testMarker, 2, 2, 0), title + "is number 2 of 3 of set abc (epoch 2), longest TTL granted 1m30s; " + evicts},
		{"master", "allkeys-lru", "hello", title + "must not vote: its key redlock-proxy:master is no marker; delete it if no other program needs it, or correct the address if another proxy listens there; " + evicts},
	} {
		cfg, upstream, masters := testServers(3)
		for i := range masters {
			masters[i].marker.text = fmt.Sprintf(testMarker, i+1, i+1, 0)
		}
		m := &masters[1]
		m.Role, m.maxmemory, m.Policy, m.marker.text = row.role, true, row.policy, row.marker
		lines, found := Answers{Config: cfg, Masters: masters}.markerLines()
		for _, h := range append(found, Answers{cfg, upstream, masters}.Hazards()...) {
			lines = append(lines, h.Text)
		}
		lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, title) })
		if got := strings.Join(lines, "; "); got != row.want {
			t.Errorf("a %s with %s and marker %q:\n got %s\nwant %s", row.role, row.policy, row.marker, got, row.want)
		}
	}
}

// A list that is longer or shorter than the set is a change of the number, and -check says how to make it. A list that
// is wrong in another way, too, must not be reloaded.
func TestAChangeOfTheNumber(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 10, 0, 0, time.UTC)
	const end = "; start no proxy with this list before its reload (deploy/RUN.md#another-number-of-masters)"
	const next = " now, and with the next one each time that REDLOCK STATUS speaks of no next change any more" + end
	for _, row := range []struct{ markers, want, states string }{
		{"1/3 2/3 3/3", "", "voting voting voting"},
		{"1/3 2/3 3/3 -", "this is a change from 3 to 4 masters: ok to reload; master 4 (m4:6379) is added" + end, "voting voting voting starting"},
		{"1/3 2/3 3/3 - -", "this is a change from 3 to 5 masters, one server a reload; master 4 (m4:6379) is added; master 5 (m5:6379) is added; ok to reload with 4 masters" + next,
			"voting voting voting starting starting"},
		{"1/4 2/4 3/4", "this is a change from 4 to 3 masters: ok to reload; what the list lacks at its end is removed" + end, "voting voting voting"},
		{"1/3 2/3", "", "rejected rejected"}, // a reload leaves three
		{"1/5 2/5", "", "rejected rejected"},
		{"1/5 2/5 3/5", "this is a change from 5 to 3 masters, one server a reload; what the list lacks at its end is removed; ok to reload with 4 masters" + next, "voting voting voting"},
		{"1/3 3/3 2/3 -", "", "rejected rejected rejected starting"},
		{"1/3 2/3 3/5 -", "", "rejected rejected rejected starting"},
		{"- - - -", "", "starting starting starting starting"},
	} {
		words := strings.Fields(row.markers)
		cfg, upstream, masters := testServers(len(words))
		var states []string
		for i, word := range words {
			if _, members, ok := strings.Cut(word, "/"); ok {
				text := fmt.Sprintf(testMarker, i+1, i+1, 0)
				n, _ := strconv.Atoi(members)
				text = regexp.MustCompile(`member=\S+`).ReplaceAllString(text, "member="+word)
				masters[i].marker = markerFacts{text: strings.Replace(text, "joined=1,1,2@m3:6379", "joined="+strings.Repeat("1,", n-1)+"1", 1), clock: now}
			}
		}
		a := Answers{Config: cfg, Upstream: upstream, Masters: masters}
		for _, st := range statesOf(masters) {
			states = append(states, st.State.String())
		}
		if got := strings.Join(states, " "); got != row.states {
			t.Errorf("%s: the states are %s, want %s", row.markers, got, row.states)
		}
		lines, found := a.markerLines()
		if row.want == "" {
			if strings.Contains(strings.Join(lines, ""), "this is a change") {
				t.Errorf("%s: %q", row.markers, lines)
			}
			continue
		}
		if lines[0] != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.markers, lines[0], row.want)
		}
		for _, h := range append(found, a.Hazards()...) {
			if h.Level != hazardWarning {
				t.Errorf("%s: -check fails: %s", row.markers, h.Text)
			}
		}
	}
}

// A new set begins in quarantine, unless the operator gives -new. -check says either
// once, whatever the number of masters.
func TestMarkerLinesOfNewcomers(t *testing.T) {
	const begins = ": a new set begins when all masters are reached and none has one"
	for _, row := range []struct {
		unmarked, away int
		want           string
	}{
		{1, 2, "master 1 (m1:6379) has no marker"},
		{2, 1, "master 1 (m1:6379), master 2 (m2:6379) have no marker"},
		{3, 0, "no master has a marker"},
	} {
		cfg, _, masters := testServers(row.unmarked + row.away)
		for i := range row.away {
			masters[row.unmarked+i].Err = errors.New("refused")
		}
		for newSet, want := range map[bool]string{true: row.want + begins, false: row.want + begins + ", and does not vote for 30s unless started with -new"} {
			cfg.NewSet = newSet
			lines, found := Answers{Config: cfg, Masters: masters}.markerLines()
			for _, hazard := range found {
				lines = append(lines, hazard.Text)
			}
			if len(lines) != 1 || lines[0] != want || (len(found) == 0) != newSet {
				t.Errorf("-new %v: %q %v, want %q", newSet, lines, found, want)
			}
		}
	}
}

// A start with -new is refused once its set is no longer new.
func TestNewIsRefusedWhereASetExists(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 10, 0, 0, time.UTC)
	founded := func(at time.Time) string { return fmt.Sprintf("%08x%024x", at.Unix(), 0xaabbccdd) }
	const take = "; take -new out of the start command, because a later start would use it again after they have forgotten everything"
	for name, row := range map[string]struct {
		newSet  bool
		set     string
		members int
		want    string
	}{
		"a set of long ago":         {true, founded(now.Add(-2 * time.Hour)), 3, "these masters belong to set " + founded(now.Add(-2*time.Hour)) + " since 2026-11-21T03:10:00Z" + take},
		"a set that does not say":   {true, "abc", 2, "these masters belong to set abc" + take},
		"a set that has just begun": {true, founded(now.Add(-time.Minute)), 3, ""},
		"one master is left over":   {true, "abc", 1, ""},
		"no set":                    {true, "", 0, ""},
		"-new was not said":         {false, "abc", 3, ""},
	} {
		cfg, _, masters := testServers(3)
		cfg.NewSet = row.newSet
		for i := range row.members {
			masters[i].marker = markerFacts{text: strings.Replace(fmt.Sprintf(testMarker, i+1, i+1, 0), "set=abc", "set="+row.set, 1), clock: now}
		}
		var found hazardList
		found.newSet(Answers{Config: cfg, Masters: masters}, now)
		got := ""
		for _, h := range found {
			got += h.Text
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
		if err := Refused(found); (err != nil) != (row.want != "") || err != nil && !errors.Is(err, ErrSetExists) {
			t.Errorf("%s: the start ends with %v", name, err)
		}
	}
}
