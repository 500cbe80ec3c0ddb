package redlock

import (
	"log/slog"
	"time"

	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// calmObserver keeps a panic of the Observer, which only watches, away from what
// it watches.
type calmObserver struct {
	Observer
	log *slog.Logger
}

func (o calmObserver) Voted(master string, vote Vote, after time.Duration) {
	defer o.contain()
	o.Observer.Voted(master, vote, after)
}

func (o calmObserver) Decided(kind Kind, verdict Verdict, after time.Duration) {
	defer o.contain()
	o.Observer.Decided(kind, verdict, after)
}

func (o calmObserver) Undone(master string) {
	defer o.contain()
	o.Observer.Undone(master)
}

func (o calmObserver) Queued(master string, waiting int) {
	defer o.contain()
	o.Observer.Queued(master, waiting)
}

func (o calmObserver) Standing(s roster.MasterStatus) {
	defer o.contain()
	o.Observer.Standing(s)
}

func (o calmObserver) Forgot(master string, cause roster.Amnesia) {
	defer o.contain()
	o.Observer.Forgot(master, cause)
}

func (o calmObserver) contain() {
	if reason := recover(); reason != nil {
		stream.LogDefect(o.log, reason)
	}
}
