package page

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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

// A Recorder remembers the last events and the last minute. All goroutines may use it.
type Recorder struct {
	changed chan struct{} // holds one element if something happened since Page looked

	mu     sync.Mutex
	events []Event // the oldest first
	states map[string]stateSince

	masters atomic.Pointer[map[string]*masterVotes] // replaced as a whole, under mu

	counting sync.Mutex // for the two below
	total    decided
	counted  minute[decided]
}

// stateSince is a master's state and since when it has it.
type stateSince struct {
	state redlock.MasterState
	since time.Time
}

// masterVotes are the votes of one master in the last minute.
type masterVotes struct {
	mu    sync.Mutex
	votes minute[votes]
}

// NewRecorder makes a Recorder that has seen nothing.
func NewRecorder() *Recorder {
	r := &Recorder{changed: make(chan struct{}, 1), states: map[string]stateSince{}}
	r.masters.Store(&map[string]*masterVotes{})
	return r
}

// Observer returns an Observer that records votes and states, and passes on everything to
// next.
func (r *Recorder) Observer(next redlock.Observer) redlock.Observer { return observer{next, r} }

type observer struct {
	redlock.Observer
	recorder *Recorder
}

// Voted implements redlock.Observer.
func (o observer) Voted(master string, vote redlock.Vote, after time.Duration, at time.Time) {
	if vote != redlock.Failed {
		o.recorder.voted(master, after, at)
	}
	o.Observer.Voted(master, vote, after, at)
}

// Standing implements redlock.Observer.
func (o observer) Standing(s redlock.MasterStatus) {
	o.recorder.standing(s, time.Now())
	o.Observer.Standing(s)
}

// Forgot implements redlock.Observer.
func (o observer) Forgot(master string, cause redlock.Amnesia) {
	o.recorder.forgot(master, cause, time.Now())
	o.Observer.Forgot(master, cause)
}

// Reloaded records a reload: its report, or why it was refused.
func (r *Recorder) Reloaded(text string) {
	r.note(Event{Kind: eventReload, Text: text}, time.Now())
}

// LockCommand counts a lock command by the names of its kind and verdict.
func (r *Recorder) LockCommand(kind, verdict string) { r.count(kind, verdict, time.Now()) }

func (r *Recorder) count(kind, verdict string, now time.Time) {
	takes := kind == redlock.KindAcquire.String() || kind == redlock.KindSwap.String()
	var one decided
	switch {
	case verdict == redlock.NoQuorum.String():
		one.undecided = 1
	case takes && verdict == redlock.Won.String():
		one.granted = 1
	case takes && verdict == redlock.Lost.String():
		one.refused = 1
	default:
		return
	}
	r.counting.Lock()
	defer r.counting.Unlock()
	r.total.add(one)
	r.counted.now(now).add(one)
}

func (r *Recorder) voted(master string, after time.Duration, now time.Time) {
	v := (*r.masters.Load())[master]
	if v == nil {
		v = r.newMaster(master)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.votes.now(now).add(after)
}

func (r *Recorder) newMaster(name string) *masterVotes {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.masters.Load()
	if v := known[name]; v != nil {
		return v
	}
	v := new(masterVotes)
	next := maps.Clone(known)
	next[name] = v
	r.masters.Store(&next)
	return v
}

// standing records a master's state. Two things are no events: a master that was just reached
// does not vote yet, and the first state of a master is that it votes.
func (r *Recorder) standing(s redlock.MasterStatus, now time.Time) {
	r.mu.Lock()
	was, known := r.states[s.Name]
	if known && was.state == s.State {
		r.mu.Unlock()
		return
	}
	r.states[s.Name] = stateSince{s.State, now}
	r.mu.Unlock()
	begins := s.State == redlock.Uncertified && (!known || was.state == redlock.Away)
	if begins || !known && s.State == redlock.Certified {
		r.change()
		return
	}
	text := s.State.String()
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	r.note(Event{Kind: eventState, Master: s.Name, Text: text}, now)
}

var causes = map[redlock.Amnesia]string{
	redlock.Emptied:     "it lost its data, so it may have forgotten locks",
	redlock.Restarted:   "it was restarted, so it may have forgotten locks",
	redlock.ClockJumped: "its clock jumped forward, so locks on it ended early",
	redlock.Replaced:    "it has been a replica of another server, so it may have forgotten locks",
}

func (r *Recorder) forgot(master string, cause redlock.Amnesia, now time.Time) {
	kind := eventQuarantine
	if cause == redlock.Replaced {
		kind = eventFailover
	}
	r.note(Event{Kind: kind, Master: master, Text: causes[cause]}, now)
}

// note appends an event, and drops the oldest if there are too many.
func (r *Recorder) note(e Event, now time.Time) {
	e.Time = Time{now}
	r.mu.Lock()
	if len(r.events) == mostEvents {
		r.events = slices.Delete(r.events, 0, 1)
	}
	r.events = append(r.events, e)
	r.mu.Unlock()
	r.change()
}

// change tells the Page that it has something new to show.
func (r *Recorder) change() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// look compares the states that were recorded with those of now, and forgets masters that
// were replaced. The state of a master that stops answering changes without an event.
func (r *Recorder) look(status redlock.Status, now time.Time) {
	there := map[string]bool{}
	for _, m := range append(status.Masters, status.Others...) {
		there[m.Name] = true
		r.standing(m, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := func(name string) bool { return !there[name] }
	maps.DeleteFunc(r.states, func(name string, _ stateSince) bool { return gone(name) })
	next := maps.Clone(*r.masters.Load())
	maps.DeleteFunc(next, func(name string, _ *masterVotes) bool { return gone(name) })
	r.masters.Store(&next)
}

// Since returns when a master came to its state.
func (r *Recorder) Since(master string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.states[master].since
}

// lastEvents returns the events, the newest first.
func (r *Recorder) lastEvents() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := append(make([]Event, 0, mostEvents), r.events...)
	slices.Reverse(list)
	return list
}

// latency returns the mean and the longest time that a master took to vote in the last
// minute. ok is false if it did not vote.
func (r *Recorder) latency(master string, now time.Time) (mean, most time.Duration, ok bool) {
	v := (*r.masters.Load())[master]
	if v == nil {
		return 0, 0, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	count, sum := 0, time.Duration(0)
	last := v.votes.last(now)
	for _, second := range append(last[:], *v.votes.now(now)) {
		count += second.count
		sum += second.sum
		most = max(most, second.most)
	}
	if count == 0 {
		return 0, 0, false
	}
	return sum / time.Duration(count), most, true
}

// commands returns how many lock commands were counted at all, and in each of the last
// seconds.
func (r *Recorder) commands(now time.Time) (total decided, last [shownSeconds]decided) {
	r.counting.Lock()
	defer r.counting.Unlock()
	return r.total, r.counted.last(now)
}
