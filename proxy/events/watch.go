package events

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock"
)

// This file looks at the states of the masters, and logs them. Each state is logged once, with the reason that it has then,
// because the reason of an unreachable master may alternate with every redial. Two states are logged only if they last for
// a moment, or if the master has not voted for that long: one that is starting may vote soon, and one whose connection has
// ended may be reached again at once. REDLOCK MASTERS has the present reason, and the page has each state.

const (
	// watchEvery is the longest pause between two looks at the masters' states. Nobody tells that a master has stopped
	// to answer, or that a state has lasted.
	watchEvery = 250 * time.Millisecond
	// startingPause is the time that a master may take to its first vote, or to its next one after a change of the
	// masters, before that is logged. In this time its clock is watched and its marker written.
	startingPause = 10 * time.Second
	// awayPause is the time after which an unreachable master is logged. First its connection ends, and then the
	// dial fails.
	awayPause = time.Second
	// shakenPause is the time after a change of the masters in which a missing quorum is not logged, if
	// enough of them are starting. No vote counts for a moment then, and lock commands wait.
	shakenPause = 3 * time.Second
)

// pauses are how long a state must last before it is logged.
var pauses = map[redlock.MasterState]time.Duration{redlock.Starting: startingPause, redlock.Unreachable: awayPause}

// Watch looks at the masters until ctx ends: at once if a state has changed. It remembers, counts and logs each state.
// It logs when the quorum is lost, with the missing masters, and when it is regained.
func (j *Journal) Watch(ctx context.Context, status func() redlock.Status) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.masters.turned:
			j.see(status(), time.Now())
		case now := <-tick.C:
			j.see(status(), now)
			j.watch(status(), now)
		}
	}
}

// see remembers, counts and logs the states of the masters.
func (j *Journal) see(status redlock.Status, now time.Time) {
	turned, lines, gone := j.masters.see(slices.Concat(status.Masters, status.Others), now)
	if meter := j.masters.meter; meter != nil {
		for _, s := range turned {
			meter.Standing(s)
		}
		for _, name := range gone {
			meter.ForgetMaster(name)
		}
	}
	j.write(lines)
}

// A quorum is what was logged of the quorum. Only ticks look at it, so masters that fail together are in one line.
type quorum struct {
	shaken time.Time // since when no quorum votes; zero: one votes
	voted  bool      // a quorum has voted at some time
	lost   time.Time // when the quorum was lost; zero: it votes now, or never did
}

func (j *Journal) watch(status redlock.Status, now time.Time) {
	s, q := j.masters.state(status, now), &j.masters.quorum
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
		j.log.Error("quorum lost: lock commands fail until more masters vote (deploy/INCIDENTS.md#quorumlost)", fields...)
	}
}

// logTexts are the log's lines about the states. Every state but voting is a warning.
var logTexts = map[redlock.MasterState]string{
	redlock.Voting:      "lock master voting",
	redlock.Starting:    "lock master starting: it answers and does not vote yet (deploy/INCIDENTS.md#starting)",
	redlock.Quarantined: "lock master quarantined: it is asked everything, its votes do not count (deploy/INCIDENTS.md#quarantined)",
	redlock.Rejected:    "lock master rejected: it must not vote (deploy/INCIDENTS.md#rejected)",
	redlock.Unreachable: "lock master unreachable; releases for it are queued (deploy/INCIDENTS.md#unreachable)",
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
