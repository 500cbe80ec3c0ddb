package events

import (
	"slices"
	"sync"
	"time"

	"redlock-proxy/redlock"
)

// mostEvents is how many of the last events are kept.
const mostEvents = 50

// The kinds of events.
const (
	eventState      = "state"      // a master has another state
	eventQuarantine = "quarantine" // this proxy has recorded that a master may have forgotten locks
	eventFailover   = "failover"   // the same, because the master has been a replica of another server
	eventReload     = "reload"     // the configuration was reloaded, or the reload was refused
)

// An Event is something that an operator may want to know of.
type Event struct {
	Time   Time   `json:"time"`
	Kind   string `json:"kind"`
	Master string `json:"master"` // empty if it is not about one
	Text   string `json:"text"`
}

// Time is a time in JSON: RFC 3339 in UTC, with milliseconds. The zero time is null.
type Time time.Time

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return []byte(time.Time(t).UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

// masters are the lock masters as Watch saw them last, and the last events.
type masters struct {
	meter  Meter         // nil: there is none; set before use
	turned chan struct{} // has an element if a state has changed that Watch has not seen

	mu     sync.Mutex
	known  map[string]*master // by name
	events []Event            // the oldest first

	quorum quorum // of the goroutine of Watch
}

// A master is what is remembered of one. Without a name in now it has no state yet.
type master struct {
	now    redlock.MasterStatus
	since  time.Time // it has its state; without a state: it was first seen
	told   bool      // this state was logged
	voted  time.Time // when it was seen to vote last, or got its first state
	logged uint8     // the states that were logged since then, a bit for each
	votes  minute[votes]
}

// votes are the answers of one master in a second.
type votes struct {
	count     int
	sum, most time.Duration
}

// A Meter counts what happens to masters. Metrics is the one in service.
type Meter interface {
	redlock.Observer
	ForgetMaster(name string) // is called for a server that is no longer a master
}

// Observer returns an Observer that remembers votes, and has Watch look at the states when one has changed. It
// passes everything on to meter, but states: Watch does that. It may be called once, before the Journal is used.
func (j *Journal) Observer(meter Meter) redlock.Observer {
	j.masters.meter = meter
	return observer{meter, j}
}

type observer struct {
	redlock.Observer
	journal *Journal
}

// Voted implements redlock.Observer.
func (o observer) Voted(name string, vote redlock.Vote, after time.Duration, at time.Time) {
	if vote != redlock.Failed {
		o.journal.masters.voted(name, after, at)
	}
	o.Observer.Voted(name, vote, after, at)
}

// Standing implements redlock.Observer.
func (o observer) Standing(redlock.MasterStatus) {
	select {
	case o.journal.masters.turned <- struct{}{}:
	default:
	}
}

var causes = map[redlock.Amnesia]string{
	redlock.Emptied:     "it lost its data, so it may have forgotten locks",
	redlock.Restarted:   "it was restarted, so it may have forgotten locks",
	redlock.ClockJumped: "its clock jumped forward, so locks on it ended early",
	redlock.Replaced:    "it has been a replica of another server, so it may have forgotten locks",
}

// Forgot implements redlock.Observer.
func (o observer) Forgot(name string, cause redlock.Amnesia) {
	kind := eventQuarantine
	if cause == redlock.Replaced {
		kind = eventFailover
	}
	o.journal.masters.note(Event{Time(time.Now()), kind, name, causes[cause]})
	o.Observer.Forgot(name, cause)
}

// NoteReload remembers a reload: its report, or why it was refused.
func (j *Journal) NoteReload(text string) {
	j.masters.note(Event{Time(time.Now()), eventReload, "", text})
}

// Events returns the last events, the newest first.
func (j *Journal) Events() []Event {
	j.masters.mu.Lock()
	defer j.masters.mu.Unlock()
	list := append(make([]Event, 0, mostEvents), j.masters.events...)
	slices.Reverse(list)
	return list
}

// Masters adds to the state of the masters what is remembered of them.
func (j *Journal) Masters(status redlock.Status) State { return j.masters.state(status, time.Now()) }

func (m *masters) state(status redlock.Status, now time.Time) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := State{Status: status}
	for _, of := range status.Masters {
		s.Masters = append(s.Masters, m.shown(of, now))
	}
	for _, of := range status.Others {
		s.Others = append(s.Others, m.shown(of, now))
	}
	return s
}

// see remembers the states of all masters, and forgets each server that is no longer one. It returns the states that
// are other ones than before, those to be logged now, and the servers that it forgot.
func (m *masters) see(all []redlock.MasterStatus, now time.Time) (turned, lines []redlock.MasterStatus, gone []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range all {
		is := m.of(s.Name)
		if is.turns(s, now) {
			isNew, begins := is.now.Name == "", s.State == redlock.Starting && is.now.State == redlock.Unreachable
			if is.since, is.told = now, false; isNew || s.State == redlock.Voting {
				is.voted, is.logged = now, 0
			}
			// It is no event that a master was just reached, nor that it votes when it is first seen.
			if !begins && !(isNew && s.State == redlock.Voting) {
				m.append(Event{Time(now), eventState, s.Name, phrase(s.State.String(), s.Reason)})
			}
			turned, is.now = append(turned, s), s
		}
		if is.now.Name == "" {
			continue
		}
		is.now = s
		if s.State == redlock.Voting {
			is.voted = now
		}
		bit, pause := uint8(1)<<s.State, pauses[s.State]
		if !is.told && (now.Sub(is.since) >= pause || is.logged&bit == 0 && now.Sub(is.voted) >= pause) {
			lines, is.told, is.logged = append(lines, s), true, is.logged|bit
		}
	}
	for name := range m.known {
		if !slices.ContainsFunc(all, func(s redlock.MasterStatus) bool { return s.Name == name }) {
			delete(m.known, name)
			gone = append(gone, name)
		}
	}
	return turned, lines, gone
}

// turns tells whether a master has another state now. One that is first seen while it is dialled has none for a moment.
func (is *master) turns(s redlock.MasterStatus, now time.Time) bool {
	if is.now.Name != "" || s.State != redlock.Unreachable {
		return is.now.Name == "" || is.now.State != s.State
	}
	if is.since.IsZero() {
		is.since = now
	}
	return now.Sub(is.since) >= awayPause
}

// of returns what is known of a master. The caller holds mu.
func (m *masters) of(name string) *master {
	if m.known[name] == nil {
		m.known[name] = new(master)
	}
	return m.known[name]
}

func (m *masters) voted(name string, after time.Duration, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.of(name).votes.now(now)
	v.count++
	v.sum += after
	v.most = max(v.most, after)
}

// shown is a master as others may see it, with the times of its votes in the last minute. The caller holds mu.
func (m *masters) shown(of redlock.MasterStatus, now time.Time) Master {
	shown, is := Master{MasterStatus: of}, m.known[of.Name]
	if is == nil {
		return shown
	}
	if is.now.Name != "" && is.now.State == of.State {
		shown.Since = is.since
	}
	count, sum := 0, time.Duration(0)
	last := is.votes.last(now)
	for _, second := range append(last[:], *is.votes.now(now)) {
		count += second.count
		sum += second.sum
		shown.VoteMost = max(shown.VoteMost, second.most)
	}
	shown.VoteMean = sum / time.Duration(max(count, 1))
	return shown
}

func (m *masters) note(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.append(e)
}

// append keeps an event, and drops the oldest if there are too many. The caller holds mu.
func (m *masters) append(e Event) {
	if len(m.events) == mostEvents {
		m.events = slices.Delete(m.events, 0, 1)
	}
	m.events = append(m.events, e)
}
