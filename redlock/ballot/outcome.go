package ballot

import (
	"fmt"
	"time"

	"redlock-proxy/redlock/roster"
)

// Outcome is what a request came to. There are three cases. If Err is set, the masters
// agreed on an error, which is the client's answer. If Verdict is NoQuorum, nobody knows
// the answer: Voting of Asked masters can vote now, and Needed are needed. Otherwise the
// request's method says which fields it sets.
type Outcome struct {
	Verdict Verdict
	// Since is the time from which a TTL counts: the request's last ballot began then.
	Since  time.Time
	Value  []byte // nil: absent
	Number int64
	Reply  []byte // Run: one RESP value, byte for byte a master's own
	// Lives is the longest TTL among the keys that a won Run wrote, as far as it is
	// known. 0: none of them expires.
	Lives time.Duration
	// Refused says that a won Run changed nothing, but has taken a lock before: it is a
	// script that acquires, and somebody else holds the lock.
	Refused bool
	// Effects are what a won Run did to its keys, if its request asked for them.
	Effects []Effect
	// Attempted is what a Run without a quorum was to do, if its request asked for Effects
	// and it certainly is a release by value. Value is the one that it releases.
	Attempted []Effect
	// Kept are the keys that a won Run found and left as they were, if its request asked
	// for Effects.
	Kept     [][]byte
	Err      string // without the leading "-"
	Answered int    // the number of masters whose answers count
	Asked    int
	Needed   int
	// Voting is the number of asked masters that can vote now: they are voting and
	// answer. It is 0 if the request was won.
	Voting int
	// Unable is the number of asked masters that answered with an error: they cannot serve now.
	Unable int
	// Unasked is the number of masters that could not be asked: they are not connected, or have not
	// answered or carried out an earlier command.
	Unasked int
	// TooLong is the number of masters whose answers were dropped because they were too long. Nobody
	// knows what these masters did.
	TooLong int
	// Quarantined is the number of asked masters that may not vote now. The first of
	// them may vote again at Until.
	Quarantined int
	Until       time.Time
	// Outrun says that a quorum agreed, and that other requests were served before this one
	// to the last try.
	Outrun bool
	// Replaced says that the value which a release found was replaced, or the lock was taken by
	// another client, before it could be deleted.
	Replaced bool
	// Abandoned says that the client had gone, or sends no more, before the request was decided.
	// Nobody knows what the answer would have been, and nothing was granted.
	Abandoned bool
	// Overtaken says that the masters have changed during the ballot.
	Overtaken bool
	// NewUntil is the time from which a new set can grant locks. Zero: the set is not new.
	NewUntil time.Time
}

// An Effect is what a won Run did to one key. A key that it left alone has none.
type Effect struct {
	Key    []byte // like Value, it may be the request's own memory
	Change Change
	Value  []byte        // of a created string; nil for any other key
	Holder []byte        // the field of a created hash that names its holder; nil for any other key
	TTL    time.Duration // what the key has left; 0: it does not expire
}

// Change is the kind of an Effect.
type Change uint8

const (
	KeyCreated   Change = iota
	KeyProlonged        // it has the same content and another expiry, maybe a shorter one
	KeyReplaced         // it has another content
	KeyReentered        // it is a hash of the same holder, with another count, and maybe another expiry
	KeyDeleted
)

// Abandoned is the outcome of a request whose client has gone.
func Abandoned() Outcome { return Outcome{Verdict: NoQuorum, Abandoned: true} }

// NoQuorumError is the client's error for a NoQuorum outcome, without the leading "-".
// No client library knows its first word. To NOQUORUM phpredis would answer false, as if
// somebody held the lock, and other libraries retry on error codes that they know.
func (o Outcome) NoQuorumError() string {
	text := "QUORUMLOST " + o.undecided()
	if !o.NewUntil.IsZero() {
		return text + "; " + roster.NewSetNotice(o.NewUntil)
	}
	switch o.Quarantined {
	case 0:
		return text
	case 1:
		return text + "; 1 is in quarantine, until " + o.Until.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s; %d are in quarantine, the first until %s", text, o.Quarantined, o.Until.UTC().Format(time.RFC3339))
}

// undecided says why there is no quorum.
func (o Outcome) undecided() string {
	switch {
	case o.TooLong > 0 && o.Answered < o.Needed:
		return fmt.Sprintf("%d lock masters answered more than limits.lock_reply, so nobody knows what the command did", o.TooLong)
	case o.Abandoned:
		return "the command was given up, because the client has closed its side of the connection"
	case o.Replaced:
		return "another value has taken the place of the one that was found, and was spared; ask again to delete it"
	case o.Outrun:
		return "other clients were given tokens first, to the last try; ask again"
	case o.Voting < o.Needed:
		text := fmt.Sprintf("%d of %d lock masters can vote, %d needed", o.Voting, o.Asked, o.Needed)
		if o.Unable > 0 {
			text += fmt.Sprintf("; %d answered with an error, and /readyz of the proxy says which", o.Unable)
		}
		return text
	case o.Answered < o.Needed && o.Unasked > 0:
		return fmt.Sprintf("only %d of %d lock masters answered in time, %d needed; %d could not be asked", o.Answered, o.Asked, o.Needed, o.Unasked)
	case o.Answered < o.Needed:
		return fmt.Sprintf("only %d of %d lock masters answered in time, %d needed", o.Answered, o.Asked, o.Needed)
	}
	return fmt.Sprintf("the answers of %d lock masters differ, %d alike needed", o.Answered, o.Needed)
}

// Split tells whether a quorum answered and the answers differ, or votes did not count because
// the masters have changed meanwhile.
func (o Outcome) Split() bool {
	return o.Verdict == NoQuorum && !o.Abandoned && (o.Answered >= o.Needed || o.Overtaken)
}
