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

// masters are the lock masters, as they were told last, and the last events.
type masters struct {
	meter Meter // nil: there is none; set before use

	mu      sync.Mutex
	known   map[string]*master // by name
	told    int                // how often Standing was called
	changes int                // of states and events
	events  []Event            // the oldest first

	quorum quorum // of the goroutine of Watch
}

// A master is what is remembered of one. Without a name in now it has no state yet.
type master struct {
	now     redlock.MasterStatus
	since   time.Time     // it has its state
	pause   time.Duration // how long the state must last before it is logged
	reasons []string      // those that were logged of this state
	votes   minute[votes]
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

// Observer returns an Observer that remembers votes and states. It passes on to meter each vote, and a
// state if it is another one. It may be called once, before the Journal is used.
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
func (o observer) Standing(s redlock.MasterStatus) {
	o.journal.passOn(o.journal.masters.isTold(s, time.Now()))
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

// Changes counts the changes of the masters' states, and the events.
func (j *Journal) Changes() int {
	j.masters.mu.Lock()
	defer j.masters.mu.Unlock()
	return j.masters.changes
}

// Masters asks for the state of the masters, and adds what is remembered of them. The state of a master
// that stops answering changes without being told, so it is remembered, too. A server that is no longer
// a master is forgotten.
func (j *Journal) Masters(status func() redlock.Status) State { return j.state(status, time.Now()) }

func (j *Journal) state(status func() redlock.Status, now time.Time) State {
	m := &j.masters
	m.mu.Lock()
	told := m.told
	m.mu.Unlock()
	s := State{Status: status()}
	all := slices.Concat(s.Status.Masters, s.Status.Others)
	for _, of := range all {
		j.passOn(m.isRead(of, told, now))
	}
	m.mu.Lock()
	for _, of := range s.Status.Masters {
		s.Masters = append(s.Masters, m.of(of.Name).shown(of, now))
	}
	for _, of := range s.Status.Others {
		s.Others = append(s.Others, m.of(of.Name).shown(of, now))
	}
	var gone []string
	for name := range m.known {
		if m.told == told && !slices.ContainsFunc(all, func(of redlock.MasterStatus) bool { return of.Name == name }) {
			gone = append(gone, name)
			delete(m.known, name)
		}
	}
	m.mu.Unlock()
	for _, name := range gone {
		if m.meter != nil {
			m.meter.ForgetMaster(name)
		}
	}
	return s
}

// news is what became of a master.
type news struct {
	stands redlock.MasterStatus
	turned bool                   // it has another state
	lines  []redlock.MasterStatus // to be logged now
}

// passOn logs and counts what became of a master.
func (j *Journal) passOn(n news) {
	if n.turned && j.masters.meter != nil {
		j.masters.meter.Standing(n.stands)
	}
	j.write(n.lines)
}

// isTold remembers a master's state.
func (m *masters) isTold(s redlock.MasterStatus, now time.Time) news {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told++
	return m.stands(s, now)
}

// isRead remembers a state that was read when others had been told that often. It does not if one was told
// since: this one may be older. Nor does it if nothing was told of an unreachable master yet, because that
// is just being dialled.
func (m *masters) isRead(s redlock.MasterStatus, told int, now time.Time) news {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told != told || s.State == redlock.Unreachable && m.of(s.Name).now.Name == "" {
		return news{}
	}
	return m.stands(s, now)
}

// stands remembers a master's state. Two states are no events: a master that was just reached does not
// vote yet, and the first state of a master is that it votes. The caller holds mu.
func (m *masters) stands(s redlock.MasterStatus, now time.Time) news {
	n := news{stands: s}
	is := m.of(s.Name)
	was := is.now
	isNew := was.Name == ""
	if n.turned = isNew || was.State != s.State; n.turned {
		begins := s.State == redlock.Starting && was.State == redlock.Unreachable // as the state of a new one
		if !isNew && was.State == redlock.Unreachable && len(is.reasons) == 0 {
			n.lines = append(n.lines, was)
		}
		is.since, is.pause, is.reasons = now, pauseOf(s.State, begins), nil
		if !begins && !(isNew && s.State == redlock.Voting) {
			m.append(Event{Time(now), eventState, s.Name, phrase(s.State.String(), s.Reason)})
		}
		m.changes++
	}
	is.now = s
	n.lines = append(n.lines, is.news(now)...)
	return n
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

// shown is a master as others may see it, with the times of its votes in the last minute.
func (is *master) shown(of redlock.MasterStatus, now time.Time) Master {
	count, sum, most := 0, time.Duration(0), time.Duration(0)
	last := is.votes.last(now)
	for _, second := range append(last[:], *is.votes.now(now)) {
		count += second.count
		sum += second.sum
		most = max(most, second.most)
	}
	return Master{of, is.since, sum / time.Duration(max(count, 1)), most}
}

func (m *masters) note(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.append(e)
	m.changes++
}

// append keeps an event, and drops the oldest if there are too many. The caller holds mu.
func (m *masters) append(e Event) {
	if len(m.events) == mostEvents {
		m.events = slices.Delete(m.events, 0, 1)
	}
	m.events = append(m.events, e)
}
