package token

import (
	"context"
	_ "embed"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// Script raises the record of a master.
//
//go:embed token.lua
var Script string

const (
	// patience is how long Give tries while other requests are given tokens first.
	patience = 2 * time.Second
	// pause is the longest wait between two tries.
	pause = 2 * time.Millisecond
)

// A Request asks for a token for the holder of a lock.
type Request struct {
	DB    int
	Key   []byte
	Value []byte // the holder's
}

// A Giver gives tokens. Any goroutine may use it.
type Giver struct {
	box  *ballot.Box
	last atomic.Int64 // the largest token that was tried here or told by a master; 0: none yet
}

// New makes a Giver.
func New(box *ballot.Box) *Giver { return &Giver{box: box} }

// Give gives a token. Won: Number is the token. Lost: the value does not hold the lock.
func (g *Giver) Give(ctx context.Context, r Request) ballot.Outcome {
	// It goes before those that wait for the lock, but not in the middle of a request that
	// may lose its votes.
	turn, err := g.box.Lanes.Enter(ctx, r.DB, []string{string(r.Key)}, lane.Queueing{Next: true})
	if err != nil {
		return ballot.Abandoned()
	}
	defer turn.Leave()
	began := time.Now()
	for try := 0; ; try++ {
		token := g.next()
		if token > marker.MostToken {
			return ballot.Outcome{Verdict: ballot.Lost, Err: usedUp}
		}
		b := g.poll(r, token, marker.FirstToken(began))
		g.learn(b.Answers)
		o := b.Outcome()
		switch {
		case o.Verdict == ballot.Won:
			o.Number = token
			return o
		case o.Verdict == ballot.NoQuorum && (ballot.Retry{}).May(try, o):
			continue // Poll waits until votes count again
		case !outrun(b.Answers): // so it is for each NoQuorum
			if quorum.Count(b.Answers, isNoString).Agree() == ballot.Won {
				o.Err = wrongType
			}
			return o
		case time.Since(began) > patience:
			o.Verdict, o.Outrun = ballot.NoQuorum, true
			return o
		case token == 0:
			continue // it has read the last token, and now tries the next one
		}
		if tasks := g.box.Masters.Loop(); tasks.Wait(tasks.Draw(pause), ctx.Done()) != loop.Late {
			return ballot.Abandoned()
		}
	}
}

// usedUp is the error after the largest token.
const usedUp = "ERR the largest fencing token was given; these lock masters cannot give another"

// next returns the token to try: one after the last that is known here. No other request of
// this process tries it. It returns 0, which no master is raised to, if none is known.
func (g *Giver) next() int64 {
	if g.last.Load() == 0 {
		return 0
	}
	return g.last.Add(1)
}

// learn takes over the largest token that masters told. Any other answer has none above 0.
func (g *Giver) learn(answers []quorum.Answer[answer]) {
	most := int64(0)
	for _, a := range answers {
		most = max(most, a.Value.before)
	}
	for {
		last := g.last.Load()
		if last >= most || g.last.CompareAndSwap(last, most) {
			return
		}
	}
}

// poll asks every master to raise the token to a number.
func (g *Giver) poll(r Request, token, first int64) *ballot.Ballot[answer] {
	servers := "real"
	if g.box.Masters.At(0).Embedded() {
		servers = "embedded"
	}
	frames := resp.AppendEval(nil, Script, [][]byte{r.Key, []byte(marker.Key)},
		r.Value, resp.Decimal(token), resp.Decimal(first), resp.Decimal(int64(r.DB)), []byte(servers))
	return ballot.Poll(g.box, frames, ballot.Question[answer]{
		Kind:    ballot.KindToken,
		DB:      r.DB,
		Keys:    []string{string(r.Key)},
		Replies: 1,
		Parse:   func(replies [][]byte) (answer, error) { return parse(replies[0], token) },
		Vote:    func(a answer) ballot.Vote { return ballot.VoteOf(a.raised) },
		Decide: func(answers []quorum.Answer[answer], elapsed time.Duration) ballot.Verdict {
			return decide(answers, func(left time.Duration) bool { return g.box.Validity(left, elapsed) > 0 })
		},
	})
}
