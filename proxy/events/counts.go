package events

import (
	"slices"
	"time"

	"redlock-proxy/redlock"
)

// Voted implements redlock.Observer.
func (m *Metrics) Voted(master string, vote redlock.Vote, after time.Duration, _ time.Time) {
	found := m.masters.get(master)
	found.votes[vote].Inc()
	if vote != redlock.Failed {
		found.times.Observe(after.Seconds())
	}
}

// Decided implements redlock.Observer.
func (m *Metrics) Decided(kind redlock.Kind, verdict redlock.Verdict, after time.Duration) {
	m.ballots.get(ballotLabels{kind, verdict}).Observe(after.Seconds())
}

// Undone implements redlock.Observer.
func (m *Metrics) Undone(master string) { m.masters.get(master).undone.Inc() }

// Queued implements redlock.Observer.
func (m *Metrics) Queued(master string, waiting int) {
	m.masters.get(master).queued.Set(float64(waiting))
}

// Standing implements redlock.Observer.
func (m *Metrics) Standing(s redlock.MasterStatus) {
	m.of.StateChanges.WithLabelValues(s.Name, s.State.String()).Inc()
}

// Forgot implements redlock.Observer.
func (m *Metrics) Forgot(master string, cause redlock.Amnesia) {
	m.of.Amnesia.WithLabelValues(master, cause.String()).Inc()
}

// Healed implements redlock.Observer.
func (m *Metrics) Healed(master string, did redlock.HealDeed) {
	m.of.HealedCopies.WithLabelValues(master, did.String()).Inc()
}

// HealPassed implements redlock.Observer.
func (m *Metrics) HealPassed(began time.Time, complete bool) {
	if !complete {
		m.of.HealPasses.WithLabelValues("incomplete").Inc()
		return
	}
	m.of.HealPasses.WithLabelValues("complete").Inc()
	m.of.HealedAt.Set(seconds(began))
}

// LockCommand counts a lock command and the seconds that it took.
func (m *Metrics) LockCommand(kind, verdict, rule string, seconds float64) {
	found := m.commands.get(commandLabels{kind, verdict, rule})
	found.count.Inc()
	found.times.Observe(seconds)
}

// LockWaited counts a lock that was granted, and how long the client waited for it.
func (m *Metrics) LockWaited(rule string, after time.Duration) {
	m.locks.get(rule).wait.Observe(after.Seconds())
}

// LockHeld counts a lock that was released, and how long it was held.
func (m *Metrics) LockHeld(rule string, after time.Duration) {
	m.locks.get(rule).hold.Observe(after.Seconds())
}

// These are the ends of a wait.
const (
	WaitGranted = "granted" // the client has the lock
	WaitRefused = "refused" // its time was over
	WaitGone    = "gone"    // the client left
	WaitError   = "error"   // nobody knows who holds the lock, or the lock plane refused
)

// Waits shows an acquire that is held back, until the caller calls ended with the outcome.
// If a reload deletes the rule in between, only the series of that outcome comes back.
func (m *Metrics) Waits(rule string) (ended func(outcome string, after time.Duration)) {
	waiting := m.of.Waiting.WithLabelValues(rule)
	waiting.Inc()
	return func(outcome string, after time.Duration) {
		waiting.Dec()
		m.of.Waited.WithLabelValues(rule, outcome).Observe(after.Seconds())
	}
}

// refusals are the codes of error replies that are counted.
var refusals = []string{"CROSSLOCK", "TRYAGAIN", "NOUPSTREAM"}

// Refused counts an error reply by its code, if it is one of refusals.
func (m *Metrics) Refused(code string) {
	if found := m.refused[code]; found != nil {
		found.Inc()
	}
}

// LimitReached counts that a client reached a limit. It ignores an unknown or empty name.
func (m *Metrics) LimitReached(limit string) {
	if slices.Contains(m.names.Limits, limit) {
		m.of.Limits.WithLabelValues(limit).Inc()
	}
}

func (m *Metrics) LockWithoutTTL()       { m.of.WithoutTTL.Inc() }
func (m *Metrics) LockBeyondQuarantine() { m.of.Beyond.Inc() }
func (m *Metrics) ClientConnected()      { m.of.Clients.Inc() }
func (m *Metrics) ClientGone()           { m.of.Clients.Dec() }
func (m *Metrics) Forwarded(n int)       { m.of.Forwards.Add(float64(n)) }
func (m *Metrics) ProtocolError()        { m.of.ProtocolErrors.Inc() }
func (m *Metrics) UpstreamDialFailed()   { m.of.DialFailures.Inc() }
func (m *Metrics) HandshakeFailed()      { m.of.Handshakes.Inc() }
func (m *Metrics) LoginRefused()         { m.of.RefusedLogins.Inc() }
func (m *Metrics) PanicRecovered()       { m.of.Panics.Inc() }

// UpstreamProtocolError counts a connection that was closed because of the upstream's replies.
func (m *Metrics) UpstreamProtocolError() { m.of.BadReplies.Inc() }

// These are the reasons why a listening client was disconnected.
const (
	ListenerGap      = "gap"
	ListenerOverflow = "overflow"
)

// ClientListens adds to the number of clients that listen to masters: 1 or -1.
func (m *Metrics) ClientListens(change float64) { m.of.Listeners.Add(change) }
func (m *Metrics) ListenerEnded(reason string)  { m.of.Ended.WithLabelValues(reason).Inc() }

// WokenUp counts messages and invalidations that were sent to clients.
func (m *Metrics) WokenUp(messages, invalidations int) {
	m.messages.Add(float64(messages))
	m.invalidations.Add(float64(invalidations))
}

// ReloadRefused counts a refused reload.
func (m *Metrics) ReloadRefused() {
	m.of.Reloads.WithLabelValues("refused").Inc()
	m.of.Reloaded.Set(0)
}

// ReloadApplied counts an applied reload, and shows the new settings.
func (m *Metrics) ReloadApplied(now Configured) {
	m.of.Reloads.WithLabelValues("applied").Inc()
	m.of.Reloaded.Set(1)
	m.ShowSettings(now)
}

// Configured are the parts of the current configuration to compare other metrics with.
type Configured struct {
	Since         time.Time
	Hash          uint64
	Rules         []string // their labels
	Waiting       []string // those of rules with a wait
	Clients       int
	MasterTimeout time.Duration
}

// ShowSettings shows the current configuration.
func (m *Metrics) ShowSettings(now Configured) {
	m.of.ActiveSince.Set(seconds(now.Since))
	m.of.Hash.Set(float64(now.Hash))
	m.rulesInForce(now.Rules, now.Waiting)
	m.of.ClientsLimit.Set(float64(now.Clients))
	m.of.Timeout.Set(now.MasterTimeout.Seconds())
}

// A Hazard is something that endangers locks. Its fields are the metric's labels.
type Hazard struct {
	Kind   string `json:"kind"`
	Server string `json:"server"`
	Detail string `json:"detail"` // what is missing there
}

// ShowHazards shows these hazards and no others. No scrape sees one missing that goes on. Only one
// goroutine at a time may call it.
func (m *Metrics) ShowHazards(hazards []Hazard) {
	for _, h := range hazards {
		m.of.Hazards.WithLabelValues(h.Kind, h.Server, h.Detail).Set(1)
	}
	for _, h := range m.hazardsShown {
		if !slices.Contains(hazards, h) {
			m.of.Hazards.DeleteLabelValues(h.Kind, h.Server, h.Detail)
		}
	}
	m.hazardsShown = hazards
}
