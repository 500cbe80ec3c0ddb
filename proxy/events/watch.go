package events

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock"
)

// This file logs the states of the masters. Within one state each reason is logged once, because the
// reason of an unreachable master may alternate with every redial. Two things are logged only if they
// last for a moment: a master that was just reached does not vote yet, and why a master is unreachable.
// First its connection ends, and then the dial fails.

const (
	// watchEvery is the pause between two looks at the masters' states. Masters that fail
	// together are then logged in one line about the quorum.
	watchEvery = 250 * time.Millisecond
	// startingPause is the time that a master may take from its first answer to its first
	// vote before that is logged. In this time its clock is watched and its marker written.
	startingPause = 10 * time.Second
	// awayPause is the time after which the reason of an unreachable master is logged. If it is
	// reached before that, its last reason is.
	awayPause = time.Second
	// mostReasons bounds the number of reasons logged for one state, because servers choose
	// the texts.
	mostReasons = 8
	// shakenPause is the time after a change of the masters in which a missing quorum is not logged, if
	// enough of them are starting. No vote counts for a moment then, and lock commands wait.
	shakenPause = 3 * time.Second
)

// pauseOf is how long a state must last before it is logged. begins tells whether the master was just
// reached.
func pauseOf(state redlock.MasterState, begins bool) time.Duration {
	switch {
	case begins:
		return startingPause
	case state == redlock.Unreachable:
		return awayPause
	}
	return 0
}

// news is the present state, if it is to be logged now. It counts as logged then.
func (is *master) news(now time.Time) []redlock.MasterStatus {
	if now.Sub(is.since) < is.pause || len(is.reasons) >= mostReasons || slices.Contains(is.reasons, is.now.Reason) {
		return nil
	}
	is.reasons = append(is.reasons, is.now.Reason)
	return []redlock.MasterStatus{is.now}
}

// Watch looks at the masters until ctx ends. It logs when the quorum is lost, with the missing masters,
// and when it is regained.
func (j *Journal) Watch(ctx context.Context, status func() redlock.Status) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			j.watch(status, now)
		}
	}
}

// A quorum is what was logged of the quorum.
type quorum struct {
	shaken time.Time // since when no quorum votes; zero: one votes
	voted  bool      // a quorum has voted at some time
	lost   time.Time // when the quorum was lost; zero: it votes now, or never did
}

func (j *Journal) watch(status func() redlock.Status, now time.Time) {
	s, q := j.state(status, now), &j.masters.quorum
	fields := []any{"voting", s.Voting(), "masters", len(s.Masters), "needed", s.Needed}
	if missing := s.Missing(); len(missing) > 0 {
		fields = append(fields, "missing", strings.Join(missing, "; "))
	}
	ready := s.Ready()
	switch {
	case ready:
		q.shaken = time.Time{}
	case q.shaken.IsZero():
		q.shaken = now
	}
	switch {
	case ready && !q.voted:
		q.voted = true
		j.log.Info("quorum reached: locks can be decided", fields...)
	case ready && !q.lost.IsZero():
		j.log.Info("quorum regained: locks can be decided again", append(fields, "after", now.Sub(q.lost).Round(time.Millisecond))...)
		q.lost = time.Time{}
	case !ready && now.Sub(q.shaken) < shakenPause && now.Sub(s.Learned) < shakenPause && s.Count(redlock.Voting, redlock.Starting) >= s.Needed:
	case !ready && q.voted && q.lost.IsZero():
		q.lost = now
		j.log.Error("quorum lost: lock commands fail until more masters vote", fields...)
	}
}

// logTexts are the log's lines about the states. Every state but voting is a warning.
var logTexts = map[redlock.MasterState]string{
	redlock.Voting:      "lock master voting",
	redlock.Starting:    "lock master starting: it answers and does not vote yet",
	redlock.Quarantined: "lock master quarantined: it is asked everything, its votes do not count",
	redlock.Rejected:    "lock master rejected: it must not vote",
	redlock.Unreachable: "lock master unreachable; releases for it are queued",
}

func (j *Journal) write(lines []redlock.MasterStatus) {
	for _, s := range lines {
		level := slog.LevelWarn
		if s.State == redlock.Voting {
			level = slog.LevelInfo
		}
		fields := []any{"master", s.Name, "state", s.State.String()}
		if s.Reason != "" {
			fields = append(fields, "reason", s.Reason)
		}
		if !s.Until.IsZero() {
			fields = append(fields, "until", timestamp(s.Until))
		}
		j.log.Log(context.Background(), level, logTexts[s.State], fields...)
	}
}
