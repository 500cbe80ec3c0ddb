package console

import (
	"cmp"
	"math"
	"slices"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/unruled"
)

// What follows makes the answers of /status.json. deploy/REFERENCE.md has the meaning of the fields.

// The values of health.
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

// Time is a time in JSON.
type Time = events.Time

// objects makes a list for JSON, which is never null.
func objects[T any](items []T, show func(item T) pairs) []pairs {
	list := make([]pairs, len(items))
	for i, item := range items {
		list[i] = show(item)
	}
	return list
}

// status is the state of now.
func (p *Page) status() pairs {
	from, clients, now := p.console.Masters(), p.console.Clients(), time.Now()
	voting, reason := from.Voting(), ""
	if voting < from.Needed {
		reason = from.Reason // why there is no set of masters
	}
	return pairs{
		"time", Time(now), "started", Time(p.started), "version", p.console.Version,
		"health", healthOf(voting, from.Needed, len(from.Masters), p.console.Draining()),
		"quorum", pairs{
			"voting", voting, "needed", from.Needed, "masters", len(from.Masters), "text", from.Quorum(), "reason", reason, "new_until", Time(from.NewUntil),
		},
		"masters", objects(from.Masters, showMaster), "clients", len(clients), "lock_commands", p.lockCommands(now),
		"hot_keys", objects(p.console.hottest(), func(k events.HotKey) pairs { return pairs{"key", k.Key, "db", k.DB, "refused", k.Refusals} }),
		"waiters", waitersOf(clients, now),
		"unruled", objects(p.unruled(), func(f unruled.Found) pairs {
			return pairs{"pattern", f.Match, "uses", f.Uses, "first", Time(f.First), "last", Time(f.Last), "shape", f.Shape, "library", f.Library, "rule", f.Rule()}
		}),
		"events", p.console.Journal.Events(), "notes", append([]string{}, p.console.Notes()...), "upstream_problem", p.console.Upstream(),
	}
}

func healthOf(voting, needed, masters int, draining bool) string {
	switch {
	case draining:
		return healthDraining
	case voting < needed:
		return healthLost
	case voting == masters:
		return healthWhole
	case voting == needed:
		return healthAtRisk
	}
	return healthReduced
}

// showMaster shows one master. An unknown value is null.
func showMaster(m events.Master) pairs {
	// milliseconds has microseconds after the point.
	milliseconds := func(d time.Duration, known bool) any {
		if !known {
			return nil
		}
		return math.Round(float64(d)/float64(time.Microsecond)) / 1000
	}
	clock, votes := m.ClockWithin > 0, m.VoteMost > 0
	return pairs{
		"name", m.Name, "state", m.State.String(), "reason", m.Reason, "since", Time(m.Since), "until", Time(m.Until),
		"clock_ahead_ms", milliseconds(m.ClockAhead, clock), "clock_within_ms", milliseconds(m.ClockWithin, clock),
		"vote_ms", milliseconds(m.VoteMean, votes), "vote_max_ms", milliseconds(m.VoteMost, votes), "longest_ttl_s", m.Longest.Seconds(),
	}
}

// lockCommands counts commands that take locks, and all that no quorum decided.
func (p *Page) lockCommands(now time.Time) pairs {
	total, last := p.console.Journal.Commands(now)
	var granted, refused, undecided [events.ShownSeconds]int64
	for i, second := range last {
		granted[i], refused[i], undecided[i] = second.Granted, second.Refused, second.Undecided
	}
	return pairs{
		"granted", total.Granted, "refused", total.Refused, "undecided", total.Undecided,
		"last_minute", pairs{"granted", granted, "refused", refused, "undecided", undecided},
	}
}

// waitersOf shows the clients whose lock command has no answer yet, those that have waited longest first.
func waitersOf(clients []events.ClientInfo, now time.Time) pairs {
	clients = slices.DeleteFunc(clients, func(c events.ClientInfo) bool {
		return c.Command == "" || now.Sub(c.Began) < waitsAfter
	})
	slices.SortFunc(clients, func(a, b events.ClientInfo) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
	})
	return pairs{"count", len(clients), "oldest", objects(clients[:min(len(clients), mostWaiters)], func(c events.ClientInfo) pairs {
		return pairs{"client", c.Address, "name", c.Name, "command", c.Command, "key", c.Key, "db", c.DB, "since", Time(c.Began)}
	})}
}
