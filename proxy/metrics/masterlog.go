package metrics

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"redlock-proxy/redlock"
)

// A MasterLog is a redlock.Observer that counts in Metrics and also logs each change of
// a master's state. Within one state it logs each reason once, because the reason of an
// unreachable master may alternate with every redial. Two things are logged only if they
// last for a moment: a master that was just reached does not vote yet, and why a master is
// unreachable. First its connection ends, and then the dial fails.
type MasterLog struct {
	*Metrics
	log *slog.Logger

	mu       sync.Mutex
	reported map[string]*reportedState // by the master's name
}

// A reportedState is the present state of a master.
type reportedState struct {
	now     redlock.MasterStatus
	reasons []string // those that were logged of this state
}

// isNews tells whether the present reason is to be logged, and takes it for logged.
func (r *reportedState) isNews() bool {
	if len(r.reasons) >= maxReasons || slices.Contains(r.reasons, r.now.Reason) {
		return false
	}
	r.reasons = append(r.reasons, r.now.Reason)
	return true
}

const (
	// uncertifiedPause is the time that a master may take from its first answer to its first
	// vote before that is logged. In this time its clock is watched and its marker written.
	uncertifiedPause = 10 * time.Second
	// awayPause is the time after which the reason of an unreachable master is logged. If it is
	// reached before that, its last reason is.
	awayPause = time.Second
)

// maxReasons bounds the number of reasons logged for one state, because servers choose
// the texts.
const maxReasons = 8

// NewMasterLog makes a MasterLog that counts in m.
func NewMasterLog(m *Metrics, log *slog.Logger) *MasterLog {
	return &MasterLog{Metrics: m, log: log, reported: map[string]*reportedState{}}
}

// news records a master's state. It returns what to log now, whether to count a change, and
// what to log after a pause if it lasts.
func (o *MasterLog) news(s redlock.MasterStatus) (lines []redlock.MasterStatus, changed bool, lasting *reportedState, pause time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.reported[s.Name]
	if !known {
		before = &reportedState{now: redlock.MasterStatus{State: redlock.Away}}
	}
	was, r := before.now.State, before
	if changed = !known || was != s.State; changed {
		if known && was == redlock.Away && len(before.reasons) == 0 {
			lines = append(lines, before.now)
		}
		r = &reportedState{}
		o.reported[s.Name] = r
	}
	r.now = s
	switch {
	case s.State == redlock.Away:
		return lines, changed, r, awayPause
	case s.State == redlock.Uncertified && (was == redlock.Away || was == redlock.Uncertified):
		return lines, changed, r, uncertifiedPause
	case r.isNews():
		lines = append(lines, s)
	}
	return lines, changed, nil, 0
}

// Standing implements redlock.Observer. Every state but voting is logged as a warning.
func (o *MasterLog) Standing(s redlock.MasterStatus) {
	lines, changed, lasting, pause := o.news(s)
	if changed {
		o.Metrics.Standing(s)
	}
	for _, line := range lines {
		o.write(line)
	}
	if lasting != nil {
		time.AfterFunc(pause, func() {
			if line, lasts := o.lasts(s.Name, lasting); lasts {
				o.write(line)
			}
		})
	}
}

// lasts returns what to log of a state, if the master still has it and the reason is news.
func (o *MasterLog) lasts(name string, r *reportedState) (line redlock.MasterStatus, lasts bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return r.now, o.reported[name] == r && r.isNews()
}

func (o *MasterLog) write(s redlock.MasterStatus) {
	level, text := slog.LevelWarn, ""
	switch s.State {
	case redlock.Certified:
		level, text = slog.LevelInfo, "lock master voting"
	case redlock.Uncertified:
		text = "lock master starting: it answers and does not vote yet"
	case redlock.Quarantined:
		text = "lock master quarantined: it is asked everything, its votes do not count"
	case redlock.Barred:
		text = "lock master rejected: it must not vote"
	default:
		text = "lock master unreachable; releases for it are queued"
	}
	fields := []any{"master", s.Name, "state", s.State.String()}
	if s.Reason != "" {
		fields = append(fields, "reason", s.Reason)
	}
	if !s.Until.IsZero() {
		fields = append(fields, "until", s.Until.UTC().Format(time.RFC3339))
	}
	o.log.Log(context.Background(), level, text, fields...)
}
