package proxy

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"redlock-proxy/redlock"
)

// quorumLook is how often it is looked whether a quorum votes. Masters that die
// together are told of in one line.
const quorumLook = 250 * time.Millisecond

// A quorumWatch logs when locks cannot be decided any more, with who is missing,
// and when they can be again.
type quorumWatch struct {
	status func() redlock.Status
	log    *slog.Logger

	voted bool      // a quorum did at some time
	lost  time.Time // since when none does; zero: one does, or never did
}

// run looks until ctx ends.
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
	fields := []any{"voting", voting(status), "masters", len(status.Masters), "needed", status.Needed}
	if missing := missingMasters(status); len(missing) > 0 {
		fields = append(fields, "missing", strings.Join(missing, "; "))
	}
	switch ready := status.Ready(); {
	case ready && !w.voted:
		w.voted = true
		w.log.Info("a quorum of lock masters votes: locks can be decided", fields...)
	case ready && !w.lost.IsZero():
		w.log.Info("quorum regained: locks can be decided again", append(fields, "after", now.Sub(w.lost).Round(time.Millisecond))...)
		w.lost = time.Time{}
	case !ready && w.voted && w.lost.IsZero():
		w.lost = now
		w.log.Error("quorum lost: lock commands are answered with an error until more masters vote", fields...)
	}
}
