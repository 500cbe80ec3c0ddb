package token

import (
	"math"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// An answer is what one master says.
type answer struct {
	held     bool  // the lock has the value
	raised   bool  // it also has raised its record
	left     int64 // the ms until its copy of the lock ends
	before   int64 // the token on record before
	noString bool  // the lock is no string
}

// endless stands for the time that is left for a lock without TTL, in ms.
const endless = int64(math.MaxInt64 / time.Millisecond / 2)

// wrongType is the error for a lock that is no string. A script words it differently on
// each version of Redis.
const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// parse reads the answer of token.lua. A master without a record that counts cannot serve.
func parse(reply []byte, token int64) (answer, error) {
	if resp.IsError(reply) {
		return answer{noString: true}, ballot.OwnAs(reply, true)
	}
	list, err := resp.Elements(reply)
	if err != nil || len(list) != 3 {
		return answer{}, ballot.OwnAs(reply, false)
	}
	var numbers [3]int64
	fits := true
	for i, element := range list {
		n, ok := resp.ParseInteger(element)
		numbers[i], fits = n, fits && ok
	}
	a := answer{held: numbers[0] == 1, left: numbers[1], before: numbers[2]}
	switch {
	case !fits:
		return answer{}, ballot.OwnAs(reply, false)
	case a.before < 0:
		return a, ballot.ErrUnable
	case a.left < 0:
		a.left = endless
	}
	a.raised = a.held && a.before < token
	return a, nil
}

func holds(a answer) bool      { return a.held }
func raised(a answer) bool     { return a.raised }
func isNoString(a answer) bool { return a.noString }

// decide returns the verdict. It is won if a quorum raised its record, and the lock is valid
// for a while. It is lost if no quorum has the value, or if a quorum has it and too few can
// raise their records any more.
func decide(answers []quorum.Answer[answer], valid func(left time.Duration) bool) ballot.Verdict {
	need, up := quorum.Size(len(answers)), quorum.Count(answers, raised)
	switch held := quorum.Count(answers, holds).Agree(); {
	case up.Granted >= need && valid(leftOf(answers)):
		return ballot.Won
	case up.Granted >= need:
		return ballot.Lost
	case held != ballot.Won:
		return held
	case up.Granted+up.Pending() >= need:
		return ballot.Pending
	}
	return ballot.Lost
}

// outrun tells whether a quorum has the value in a ballot that was lost, and too few raised
// their records.
func outrun(answers []quorum.Answer[answer]) bool {
	need := quorum.Size(len(answers))
	return quorum.Count(answers, holds).Granted >= need && quorum.Count(answers, raised).Granted < need
}

// leftOf returns for how long a quorum of those that raised their records has the lock.
func leftOf(answers []quorum.Answer[answer]) time.Duration {
	var left []int64
	for _, a := range answers {
		if a.State == quorum.Answered && a.Value.raised {
			left = append(left, a.Value.left)
		}
	}
	n, _ := quorum.Attained(len(answers), left)
	return time.Duration(n) * time.Millisecond
}
