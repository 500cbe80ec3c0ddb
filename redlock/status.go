package redlock

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/heal"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/notify"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/run"
	"redlock-proxy/redlock/scan"
	"redlock-proxy/redlock/stream"
)

// Types of package roster that say which masters may vote.
type (
	// MasterState says whether a master's votes count.
	MasterState = roster.State
	// MasterStatus is one master as this process sees it.
	MasterStatus = roster.MasterStatus
	// Status is the status of all masters, in the order of the configuration.
	Status = roster.Status
	// Amnesia is the reason why a master may have forgotten locks.
	Amnesia = roster.Amnesia
	// MarkerFacts is the content of a marker, to show to people.
	MarkerFacts = marker.Facts
	// Found is the result of one look at a master, for Survey.
	Found = roster.Found
	// Standing says whether a master's votes count, and why not.
	Standing = roster.Standing
	// Server is a master's name, and whether it may become another server.
	Server = roster.Server
)

// The states of a master.
const (
	Unreachable = roster.Unreachable
	Starting    = roster.Starting
	Quarantined = roster.Quarantined
	Voting      = roster.Voting
	Rejected    = roster.Rejected
)

// The kinds of amnesia.
const (
	Emptied     = roster.Emptied
	Restarted   = roster.Restarted
	ClockJumped = roster.ClockJumped
	Replaced    = roster.Replaced
)

// MarkerKey is our one key in each database of a master. No client may touch it.
const MarkerKey = marker.Key

// ReadMarker reads the value of MarkerKey; ok is false for any other text.
func ReadMarker(text string) (facts MarkerFacts, ok bool) {
	return marker.Read(text, time.Now())
}

// WriteProbe is a command that a master refuses if it refuses to take locks. It writes nothing.
func WriteProbe() []string { return slices.Clone(stream.WriteProbe) }

// Refusal says for people why a master refused WriteProbe, and what to do. text is its error.
func Refusal(text string) string { return master.Refusal([]byte("-" + text)) }

// Survey judges masters by their markers, as a Locker would that is started now. It
// writes nothing. It is for tools that look from outside.
func Survey(found []Found) []Standing { return roster.Survey(found, time.Now()) }

// NewSetNotice is a notice for people: the masters form a new set, which grants locks
// from until.
func NewSetNotice(until time.Time) string { return roster.NewSetNotice(until) }

// Status returns the state of each master.
func (l *Locker) Status() Status { return l.masters.Status() }

// Run executes a command on lock keys for which this package has no request of its own.
// Package run says how.
func (l *Locker) Run(ctx context.Context, r RunRequest) Outcome { return l.runs.Run(ctx, r) }

// Watch looks at keys as WATCH does, for a RunRequest that follows.
func (l *Locker) Watch(ctx context.Context, db int, keys [][]byte) (*Watch, Outcome) {
	return l.runs.Watch(ctx, db, keys)
}

// Prospects returns the number of masters that can vote in a database now, and the
// number that will by the given time, as far as is known. With fewer than a quorum,
// nothing can be decided until then. A process that has just started still watches the
// masters' clocks. For it the first number is 0, and the second shows whether anything
// else is missing.
func (l *Locker) Prospects(db int, by time.Time) (now, then int) { return l.masters.Prospects(db, by) }

// Subscriber makes a Subscriber that hears of events on the masters. The Locker's
// goroutines call hear with one event at a time, and hear must not block. The caller must
// Close the Subscriber, but not inside hear. After Close has returned, hear is not called
// any more.
func (l *Locker) Subscriber(hear func(notify.Event)) *notify.Subscriber {
	return l.listening.Subscriber(hear)
}

// TrackingAvailable tells whether a quorum of the masters can report changed keys. If
// not (embedded masters, servers older than Redis 6), Track and TrackPrefix hear nothing.
func (l *Locker) TrackingAvailable() bool { return l.listening.CanTrack() }

// Reader reads what the masters hold, for people.
func (l *Locker) Reader() *scan.Reader { return scan.NewReader(l.box) }

// TellAll is what the operator has to do when the masters change.
const TellAll = roster.TellAll

// ShortValue is the length in bytes below which many clients may share a value.
const ShortValue = stream.ShortValue

// Types of package notify for a Subscriber.
type (
	Subscriber = notify.Subscriber
	Event      = notify.Event
)

const (
	EventMessage        = notify.EventMessage
	EventPatternMessage = notify.EventPatternMessage
	EventChanged        = notify.EventChanged
	EventGap            = notify.EventGap
)

// Types of packages ballot and run for requests and their outcomes.
type (
	Outcome = ballot.Outcome
	Verdict = ballot.Verdict
	Vote    = ballot.Vote
	Kind    = ballot.Kind
	Effect  = ballot.Effect
	Change  = ballot.Change

	HealDeed = heal.Deed

	RunRequest = run.Request
	Watch      = run.Watch
)

const (
	Pending  = ballot.Pending
	Won      = ballot.Won
	Lost     = ballot.Lost
	NoQuorum = ballot.NoQuorum

	Failed     = ballot.Failed
	Granted    = ballot.Granted
	Refused    = ballot.Refused
	Discounted = ballot.Discounted

	KeyCreated   = ballot.KeyCreated
	KeyProlonged = ballot.KeyProlonged
	KeyReplaced  = ballot.KeyReplaced
	KeyReentered = ballot.KeyReentered
	KeyDeleted   = ballot.KeyDeleted

	KindAcquire = ballot.KindAcquire
	KindExtend  = ballot.KindExtend
	KindRelease = ballot.KindRelease
	KindRead    = ballot.KindRead
	KindSwap    = ballot.KindSwap
	KindRun     = ballot.KindRun
	KindToken   = ballot.KindToken

	HealWritten  = heal.Written
	HealTooLarge = heal.TooLarge
)
