package redlock

import (
	"log/slog"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/heal"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// Observer hears what happens to ballots and masters. Its methods are called from many
// goroutines at once and must not block.
type Observer interface {
	master.Observer
	ballot.Observer
	heal.Observer
}

type nobody struct{}

func (nobody) Voted(string, Vote, time.Duration, time.Time) {}
func (nobody) Decided(Kind, Verdict, time.Duration)         {}
func (nobody) Undone(string)                                {}
func (nobody) Queued(string, int)                           {}
func (nobody) Standing(roster.MasterStatus)                 {}
func (nobody) Forgot(string, roster.Amnesia)                {}
func (nobody) Healed(string, heal.Deed)                     {}
func (nobody) HealPassed(time.Time, bool)                   {}

// calmObserver contains the Observer's panics. An Observer only watches, so its defects
// must not harm a ballot.
type calmObserver struct {
	Observer
	log *slog.Logger
}

func (o calmObserver) Voted(master string, vote Vote, after time.Duration, at time.Time) {
	defer o.contain()
	o.Observer.Voted(master, vote, after, at)
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

func (o calmObserver) Healed(master string, did heal.Deed) {
	defer o.contain()
	o.Observer.Healed(master, did)
}

func (o calmObserver) HealPassed(began time.Time, complete bool) {
	defer o.contain()
	o.Observer.HealPassed(began, complete)
}

func (o calmObserver) contain() {
	if reason := recover(); reason != nil {
		stream.LogDefect(o.log, reason)
	}
}
