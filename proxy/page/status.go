package page

import (
	"fmt"
	"math"
	"time"

	"redlock-proxy/redlock"
)

// The values of Status.Health.
const (
	healthWhole    = "whole"    // every master votes
	healthReduced  = "reduced"  // some do not, and more may fail
	healthAtRisk   = "at_risk"  // a quorum votes, and one more failure ends it
	healthLost     = "lost"     // no lock can be decided
	healthDraining = "draining" // the proxy is ending
)

// Status is what /status.json answers. deploy/README.md has the meaning of the fields.
type Status struct {
	Time     Time         `json:"time"`
	Started  Time         `json:"started"`
	Version  string       `json:"version"`
	Health   string       `json:"health"`
	Quorum   Quorum       `json:"quorum"`
	Masters  []Master     `json:"masters"`
	Clients  int          `json:"clients"`
	Commands LockCommands `json:"lock_commands"`
	Hot      []HotKey     `json:"hot_keys"`
	Waiters  Waiters      `json:"waiters"`
	Unruled  []Unruled    `json:"unruled"`
	Events   []Event      `json:"events"`
	Notes    []string     `json:"notes"`
	Upstream string       `json:"upstream_problem"` // empty if there is none
}

// Quorum says whether locks can be decided.
type Quorum struct {
	Voting   int    `json:"voting"`
	Needed   int    `json:"needed"`
	Masters  int    `json:"masters"`
	Text     string `json:"text"`
	Reason   string `json:"reason"`    // why there is no set of masters
	NewUntil Time   `json:"new_until"` // when a new set grants locks
}

// Master is one master. An unknown value is null.
type Master struct {
	Name        string   `json:"name"`
	State       string   `json:"state"`
	Reason      string   `json:"reason"`
	Since       Time     `json:"since"`
	Until       Time     `json:"until"`
	ClockAhead  *float64 `json:"clock_ahead_ms"`
	ClockWithin *float64 `json:"clock_within_ms"`
	VoteMean    *float64 `json:"vote_ms"`
	VoteMost    *float64 `json:"vote_max_ms"`
	LongestTTL  float64  `json:"longest_ttl_s"`
}

// LockCommands counts commands that take locks, and all that no quorum decided.
type LockCommands struct {
	Granted    int64 `json:"granted"`
	Refused    int64 `json:"refused"`
	Undecided  int64 `json:"undecided"`
	LastMinute struct {
		Granted   []int64 `json:"granted"`
		Refused   []int64 `json:"refused"`
		Undecided []int64 `json:"undecided"`
	} `json:"last_minute"`
}

// Unruled is a pattern of keys that look like locks and match no rule.
type Unruled struct {
	Pattern string `json:"pattern"`
	Uses    int64  `json:"uses"`
	First   Time   `json:"first"`
	Last    Time   `json:"last"`
	Shape   string `json:"shape"`
	Library string `json:"library"`
	Rule    string `json:"rule"`
}

// Time is a time in JSON: RFC 3339 in UTC, with milliseconds. The zero time is null.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

// status makes the Status of now.
func (p *Page) status() Status {
	from := p.source.Masters()
	now := time.Now()
	p.recorder.look(from, now)
	s := Status{
		Time: Time{now}, Started: Time{p.started}, Version: p.source.Version,
		Clients: p.source.Clients(), Events: p.recorder.lastEvents(), Notes: append([]string{}, p.source.Notes()...), Upstream: p.source.Upstream(),
		Quorum: quorumOf(from), Hot: hotKeysOf(p.source.Hottest(mostHot)), Waiters: waitersOf(p.source.Known(), now),
	}
	s.Unruled = []Unruled{}
	for _, f := range p.source.Unruled() {
		s.Unruled = append(s.Unruled, Unruled{f.Match, f.Uses, Time{f.First}, Time{f.Last}, f.Shape, f.Library, f.Rule()})
	}
	s.Health = healthOf(s.Quorum, p.source.Draining())
	for _, m := range from.Masters {
		s.Masters = append(s.Masters, p.masterOf(m, now))
	}
	total, last := p.recorder.commands(now)
	s.Commands = LockCommands{Granted: total.granted, Refused: total.refused, Undecided: total.undecided}
	for _, second := range last {
		minute := &s.Commands.LastMinute
		minute.Granted = append(minute.Granted, second.granted)
		minute.Refused = append(minute.Refused, second.refused)
		minute.Undecided = append(minute.Undecided, second.undecided)
	}
	return s
}

func quorumOf(from redlock.Status) Quorum {
	q := Quorum{Needed: from.Needed, Masters: len(from.Masters), NewUntil: Time{from.NewUntil}}
	for _, m := range from.Masters {
		if m.State == redlock.Certified {
			q.Voting++
		}
	}
	if q.Voting < q.Needed {
		q.Reason = from.Reason
	}
	q.Text = fmt.Sprintf("%d of %d lock masters vote, %d needed", q.Voting, q.Masters, q.Needed)
	return q
}

func healthOf(q Quorum, draining bool) string {
	switch {
	case draining:
		return healthDraining
	case q.Voting < q.Needed:
		return healthLost
	case q.Voting == q.Masters:
		return healthWhole
	case q.Voting == q.Needed:
		return healthAtRisk
	}
	return healthReduced
}

func (p *Page) masterOf(m redlock.MasterStatus, now time.Time) Master {
	shown := Master{
		Name: m.Name, State: m.State.String(), Reason: m.Reason,
		Since: Time{p.recorder.Since(m.Name)}, Until: Time{m.Until}, LongestTTL: m.Longest.Seconds(),
	}
	if m.ClockWithin > 0 {
		shown.ClockAhead, shown.ClockWithin = milliseconds(m.ClockAhead), milliseconds(m.ClockWithin)
	}
	if mean, most, ok := p.recorder.latency(m.Name, now); ok {
		shown.VoteMean, shown.VoteMost = milliseconds(mean), milliseconds(most)
	}
	return shown
}

// milliseconds has microseconds after the point.
func milliseconds(d time.Duration) *float64 {
	ms := math.Round(float64(d)/float64(time.Microsecond)) / 1000
	return &ms
}
