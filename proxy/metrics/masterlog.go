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
// unreachable master may alternate with every redial. If a master that was just reached
// does not vote yet, MasterLog logs that only after uncertifiedPause.
type MasterLog struct {
	*Metrics
	log *slog.Logger

	mu       sync.Mutex
	reported map[string]reportedState // by the master's name
}

type reportedState struct {
	state   redlock.MasterState
	reasons []string
	now     string // the current reason
}

// uncertifiedPause is the time that a master may take from its first answer to its first
// vote before that is logged. In this time its clock is watched and its marker written.
const uncertifiedPause = 10 * time.Second

// maxReasons bounds the number of reasons logged for one state, because servers choose
// the texts.
const maxReasons = 8

// NewMasterLog makes a MasterLog that counts in m.
func NewMasterLog(m *Metrics, log *slog.Logger) *MasterLog {
	return &MasterLog{Metrics: m, log: log, reported: map[string]reportedState{}}
}

// news records a master's state. It returns the state before, whether to log the reason
// and whether to count a change.
func (o *MasterLog) news(s redlock.MasterStatus) (before redlock.MasterState, report, count bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	reported, known := o.reported[s.Name] // if unknown, its state is the zero value, redlock.Away
	before = reported.state
	if count = !known || reported.state != s.State; count {
		reported = reportedState{state: s.State}
	}
	if report = len(reported.reasons) < maxReasons && !slices.Contains(reported.reasons, s.Reason); report {
		reported.reasons = append(reported.reasons, s.Reason)
	}
	reported.now = s.Reason
	o.reported[s.Name] = reported
	return before, report, count
}

// Standing implements redlock.Observer. Every state but voting is logged as a warning.
func (o *MasterLog) Standing(s redlock.MasterStatus) {
	before, report, count := o.news(s)
	if count {
		o.Metrics.Standing(s)
	}
	begins := s.State == redlock.Uncertified && (before == redlock.Away || before == redlock.Uncertified)
	switch {
	case report && begins:
		time.AfterFunc(uncertifiedPause, func() {
			if o.stands(s) {
				o.write(s)
			}
		})
	case report:
		o.write(s)
	}
}

// stands tells whether the master still has this state for this reason.
func (o *MasterLog) stands(s redlock.MasterStatus) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	reported := o.reported[s.Name]
	return reported.state == s.State && reported.now == s.Reason
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
