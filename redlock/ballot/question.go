package ballot

import (
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// A Question is what one ballot puts to every master. A is the type of an answer.
type Question[A any] struct {
	Kind    Kind
	DB      int
	Each    func(master int) []byte // if set, the frames for each master; nil bytes: it is not asked
	Guard   *Guard[A]               // if set, the check before the question
	Replies int                     // the number of a master's replies
	Keys    []string                // the keys it may write; all streams get questions on a key in one order
	Creates bool                    // it may create or extend a lock under them
	Load    []stream.Loadable       // scripts that the masters must know for it
	TTL     time.Duration           // the longest it may give, as markers have it; 0: none, or not known yet
	Gives   time.Duration           // the TTL that a win gives; a win without any validity of it is Lost; 0: none
	Large   bool                    // its answers may be, so it waits for its turn, as one does whose frames are
	Task    *loop.Task              // the asker, if it may be on the loop: it is parked there until the verdict; else nil
	// Left, if set, is closed when the asker needs no answer any more. Then it waits no longer until
	// votes count, before the ballot. A large question that still waits for its turn is not asked at all.
	Left <-chan struct{}

	// Counts tells whether an answer counts although its master may have forgotten
	// locks. It may count if it shows a key, and not if it shows that a key is missing.
	// Nil: no such answer counts.
	Counts func(A) bool

	// Parse reads a master's replies and copies what it keeps of them. It returns
	// ErrUnable or another of this package's errors if the master could not serve the
	// question, which then is no answer. After any other error the connection cannot
	// be trusted any more.
	Parse func(replies [][]byte) (A, error)
	// Vote is the vote that the Observer gets for an answer.
	Vote func(A) Vote
	// Decide is the verdict on the answers so far. It is pure. elapsed counts from
	// before the first byte was sent.
	Decide func(answers []quorum.Answer[A], elapsed time.Duration) Verdict
	// Settler, if set, gets each answer with the final verdict: before Poll returns, or late.
	Settler Settler[A]
	// Keeper, if set, is asked when the ballot was won.
	Keeper Keeper[A]
	// Debt, if set, is what a master must still be told if its connection broke before
	// it answered, or if it could not serve the question. A forgotten script leaves no
	// debt. With OwedToAbsent a master that cannot be asked now gets the debt, too.
	Debt         *stream.Debt
	OwedToAbsent bool
}

// A Settler applies the final verdict to each answer, once. It gets late answers on the
// stream's reader, and those among Ballot.Answers before Poll returns. A request that panics
// gets them again, with NoQuorum.
type Settler[A any] interface {
	Settle(b *Ballot[A], master int, a quorum.Answer[A], verdict Verdict)
}

// SettleFunc is a function as a Settler.
type SettleFunc[A any] func(b *Ballot[A], master int, a quorum.Answer[A], verdict Verdict)

// Settle calls f.
func (f SettleFunc[A]) Settle(b *Ballot[A], master int, a quorum.Answer[A], verdict Verdict) {
	f(b, master, a, verdict)
}

// A Keeper tells whether a ballot that was won stays won. Late answers wait until it
// returns, and then are among Ballot.Answers.
type Keeper[A any] interface {
	Keep(b *Ballot[A]) bool
}

// KeepFunc is a function as a Keeper.
type KeepFunc[A any] func(b *Ballot[A]) bool

// Keep calls f.
func (f KeepFunc[A]) Keep(b *Ballot[A]) bool { return f(b) }

// An Observer hears how ballots go. Its methods are called from many goroutines at once
// and must not block.
type Observer interface {
	// Voted is called when a master answered a ballot at the given time, or did not. after is
	// the time since the ballot began.
	Voted(master string, vote Vote, after time.Duration, at time.Time)
	// Decided is called when a ballot of that kind came to its verdict.
	Decided(kind Kind, verdict Verdict, after time.Duration)
	// Undone is called when a grant was queued to be undone. The grant counted, but its
	// request was not won.
	Undone(master string)
}

// Vote is one master's answer.
type Vote uint8

const (
	Failed     Vote = iota // no answer in time, or the server could not serve the question
	Granted                // it did or confirmed what was asked
	Refused                // it answered that it did not
	Discounted             // it answered but may not vote, as in quarantine
)

func (v Vote) String() string { return [...]string{"failed", "granted", "refused", "discounted"}[v] }

// Verdict is the result of a ballot.
type Verdict = quorum.Verdict

const (
	Pending  = quorum.Pending
	Won      = quorum.Won
	Lost     = quorum.Lost
	NoQuorum = quorum.NoQuorum
)

// Kind is the kind of question that a ballot asks, for the Observer.
type Kind uint8

const (
	KindAcquire Kind = iota
	KindExtend
	KindRelease
	KindRead
	KindSwap
	KindRun
	KindToken
	KindHeal // a question of our own about what masters lack
)

func (k Kind) String() string {
	return [...]string{"acquire", "extend", "release", "read", "swap", "run", "token", "heal"}[k]
}
