package proxy

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock"
)

// quorumLook is the pause between two looks at the masters' states. Masters that fail
// together are then logged in one line.
const quorumLook = 250 * time.Millisecond

// A quorumWatch logs when the quorum is lost, with the missing masters, and when it is
// regained.
type quorumWatch struct {
	status func() redlock.Status
	gone   func(master string) // called for a server that is no longer a master
	log    *slog.Logger

	shaken time.Time              // since when no quorum votes; zero: one votes
	known  []redlock.MasterStatus // the masters at the last look

	voted bool      // a quorum has voted at some time
	lost  time.Time // when the quorum was lost; zero: it votes now, or never did
}

// run looks at the states until ctx ends.
func (w *quorumWatch) run(ctx context.Context) {
	tick := time.NewTicker(quorumLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.look(now)
		}
	}
}

func (w *quorumWatch) look(now time.Time) {
	status := w.status()
	w.compare(append(status.Masters, status.Others...))
	fields := []any{"voting", voting(status), "masters", len(status.Masters), "needed", status.Needed}
	if missing := missingMasters(status); len(missing) > 0 {
		fields = append(fields, "missing", strings.Join(missing, "; "))
	}
	switch ready := status.Ready(); {
	case ready:
		w.shaken = time.Time{}
	case w.shaken.IsZero():
		w.shaken = now
	}
	switch ready := status.Ready(); {
	case ready && !w.voted:
		w.voted = true
		w.log.Info("quorum reached: locks can be decided", fields...)
	case ready && !w.lost.IsZero():
		w.log.Info("quorum regained: locks can be decided again", append(fields, "after", now.Sub(w.lost).Round(time.Millisecond))...)
		w.lost = time.Time{}
	case !ready && now.Sub(w.shaken) < shakenPause && now.Sub(status.Learned) < shakenPause && mayReturn(status):
	case !ready && w.voted && w.lost.IsZero():
		w.lost = now
		w.log.Error("quorum lost: lock commands fail until more masters vote", fields...)
	}
}

// shakenPause is the time after a change of the masters in which a missing quorum is not logged, if
// enough of them are starting. No vote counts for a moment then, and lock commands wait.
const shakenPause = 3 * time.Second

func mayReturn(status redlock.Status) bool {
	return countMasters(status, redlock.Certified, redlock.Uncertified) >= status.Needed
}

// compare finds servers that are no longer masters.
func (w *quorumWatch) compare(now []redlock.MasterStatus) {
	for _, m := range w.known {
		if !slices.ContainsFunc(now, func(n redlock.MasterStatus) bool { return n.Name == m.Name }) {
			w.gone(m.Name)
		}
	}
	w.known = now
}
