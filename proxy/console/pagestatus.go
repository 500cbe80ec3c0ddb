package console

import (
	"cmp"
	"math"
	"slices"
	"time"

	"redlock-proxy/proxy/events"
)

// The values of Status.Health.
const (
	healthWhole    = "whole"    // every master votes
	healthReduced  = "reduced"  // some do not, and more may fail
	healthAtRisk   = "at_risk"  // a quorum votes, and one more failure ends it
	healthLost     = "lost"     // no lock can be decided
	healthDraining = "draining" // the proxy is ending
)

const (
	mostWaiters = 20
	// waitsAfter is how long a lock command runs before its client counts as waiting.
	waitsAfter = 100 * time.Millisecond
)

// Status is what /status.json answers. deploy/README.md has the meaning of the fields.
type Status struct {
	Time     Time            `json:"time"`
	Started  Time            `json:"started"`
	Version  string          `json:"version"`
	Health   string          `json:"health"`
	Quorum   Quorum          `json:"quorum"`
	Masters  []Master        `json:"masters"`
	Clients  int             `json:"clients"`
	Commands LockCommands    `json:"lock_commands"`
	Hot      []events.HotKey `json:"hot_keys"`
	Waiters  Waiters         `json:"waiters"`
	Unruled  []Unruled       `json:"unruled"`
	Events   []events.Event  `json:"events"`
	Notes    []string        `json:"notes"`
	Upstream string          `json:"upstream_problem"` // empty if there is none
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

// Time is a time in JSON.
type Time = events.Time

// status makes the Status of now.
func (p *Page) status() Status {
	from := p.console.Masters()
	now := time.Now()
	s := Status{
		Time: Time(now), Started: Time(p.started), Version: p.source.Version,
		Clients: p.source.Clients(), Events: p.console.Journal.Events(), Notes: append([]string{}, p.source.Notes()...), Upstream: p.source.Upstream(),
		Quorum: quorumOf(from), Hot: append([]events.HotKey{}, p.console.hottest()...), Waiters: waitersOf(p.console.Clients(), now),
		Unruled: []Unruled{},
	}
	for _, f := range p.unruled() {
		s.Unruled = append(s.Unruled, Unruled{f.Match, f.Uses, Time(f.First), Time(f.Last), f.Shape, f.Library, f.Rule()})
	}
	s.Health = healthOf(s.Quorum, p.source.Draining())
	for _, m := range from.Masters {
		s.Masters = append(s.Masters, masterOf(m))
	}
	total, last := p.console.Journal.Commands(now)
	s.Commands = LockCommands{Granted: total.Granted, Refused: total.Refused, Undecided: total.Undecided}
	for _, second := range last {
		minute := &s.Commands.LastMinute
		minute.Granted = append(minute.Granted, second.Granted)
		minute.Refused = append(minute.Refused, second.Refused)
		minute.Undecided = append(minute.Undecided, second.Undecided)
	}
	return s
}

func quorumOf(from events.State) Quorum {
	q := Quorum{Voting: from.Voting(), Needed: from.Needed, Masters: len(from.Masters), Text: from.Quorum(), NewUntil: Time(from.NewUntil)}
	if q.Voting < q.Needed {
		q.Reason = from.Reason
	}
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

func masterOf(m events.Master) Master {
	shown := Master{
		Name: m.Name, State: m.State.String(), Reason: m.Reason,
		Since: Time(m.Since), Until: Time(m.Until), LongestTTL: m.Longest.Seconds(),
	}
	if m.ClockWithin > 0 {
		shown.ClockAhead, shown.ClockWithin = milliseconds(m.ClockAhead), milliseconds(m.ClockWithin)
	}
	if m.VoteMost > 0 {
		shown.VoteMean, shown.VoteMost = milliseconds(m.VoteMean), milliseconds(m.VoteMost)
	}
	return shown
}

// milliseconds has microseconds after the point.
func milliseconds(d time.Duration) *float64 {
	ms := math.Round(float64(d)/float64(time.Microsecond)) / 1000
	return &ms
}

// Waiters are the clients whose lock command has no answer yet.
type Waiters struct {
	Count  int      `json:"count"`
	Oldest []Waiter `json:"oldest"`
}

// A Waiter is one of them. Name is what the client calls itself.
type Waiter struct {
	Client  string `json:"client"`
	Name    string `json:"name"`
	Command string `json:"command"`
	Key     string `json:"key"`
	DB      int    `json:"db"`
	Since   Time   `json:"since"`
}

// waitersOf returns the clients that wait, those that have waited longest first.
func waitersOf(clients []events.ClientInfo, now time.Time) Waiters {
	clients = slices.DeleteFunc(clients, func(c events.ClientInfo) bool {
		return c.Command == "" || now.Sub(c.Began) < waitsAfter
	})
	slices.SortFunc(clients, func(a, b events.ClientInfo) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
	})
	w := Waiters{Count: len(clients), Oldest: []Waiter{}}
	for _, c := range clients[:min(len(clients), mostWaiters)] {
		w.Oldest = append(w.Oldest, Waiter{Client: c.Address, Name: c.Name, Command: c.Command, Key: c.Key, DB: c.DB, Since: Time(c.Began)})
	}
	return w
}
