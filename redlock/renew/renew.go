package renew

import (
	"context"
	_ "embed"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// Script extends a lock on one master.
//
//go:embed renew.lua
var Script string

// A Request asks for the extension of a lock.
type Request struct {
	DB     int
	Key    []byte
	Holder []byte        // the value of a string
	Hash   bool          // the lock is a hash, and Holder one of its fields
	TTL    time.Duration // above 0, whole milliseconds
}

// Renew extends the lock. Lost: Number is the number of masters that still have it.
func Renew(ctx context.Context, box *ballot.Box, r Request) ballot.Outcome {
	// It goes before those that wait, but not in the middle of another request. Votes that
	// the other one is about to lose would count for this one.
	turn, err := box.Lanes.Enter(ctx, r.DB, []string{string(r.Key)}, lane.Queueing{Next: true})
	if err != nil {
		return ballot.Outcome{Verdict: ballot.NoQuorum}
	}
	defer turn.Leave()
	kind := "string"
	if r.Hash {
		kind = "hash"
	}
	frames := resp.AppendEval(nil, Script, [][]byte{r.Key}, r.Holder, resp.Decimal(r.TTL.Milliseconds()), []byte(kind))
	b := ballot.Poll(box, frames, ballot.Question[bool]{
		Kind:    ballot.KindExtend,
		DB:      r.DB,
		Keys:    []string{string(r.Key)},
		Creates: true,
		TTL:     box.Masters.Covered(r.TTL),
		Gives:   r.TTL,
		Replies: 1,
		Parse:   ballot.ParseDone,
		Vote:    ballot.VoteOf,
		Decide:  ballot.Tallied(quorum.Tally.Agree),
	})
	o := b.Outcome()
	if o.Verdict == ballot.Lost {
		for _, a := range b.Answers {
			if a.State.Heard() && a.Value {
				o.Number++
			}
		}
	}
	return o
}
