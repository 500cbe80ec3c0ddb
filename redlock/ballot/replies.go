package ballot

import (
	"errors"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// ErrUnable says that the master's reply is an error: it cannot serve now.
var ErrUnable = errors.New("the master cannot serve now")

// ErrBlind is like ErrUnable, but nobody knows what the master has done.
var ErrBlind = errors.New("the master cannot serve now, and what it did is unknown")

// ErrNoScript says that the master forgot a script which this stream had loaded.
var ErrNoScript = errors.New("the master has forgotten a script")

// errMisread says that the reply cannot be one to the question.
var errMisread = errors.New("the master's reply does not fit the question")

// ReadAs returns the error that Question.Parse returns for a reply: ErrUnable if the
// master cannot serve, nil if the reply fits the question.
func ReadAs(reply []byte, fits bool) error {
	switch {
	case resp.CannotServe(reply):
		return ErrUnable
	case !fits:
		return errMisread
	}
	return nil
}

// OwnAs is ReadAs for a command or script of our own. Every master understands those, so
// any error but WRONGTYPE says that the master cannot serve.
func OwnAs(reply []byte, fits bool) error {
	switch {
	case resp.IsWrongType(reply):
		return nil
	case resp.IsError(reply):
		return ErrUnable
	case !fits:
		return errMisread
	}
	return nil
}

// ParseDone reads the reply of a script that returns 1 when it did its work. If the key
// has another type, that is a refusal.
func ParseDone(replies [][]byte) (done bool, err error) {
	n, ok := resp.ParseInteger(replies[0])
	return n > 0, OwnAs(replies[0], ok)
}

// VoteOf turns a yes or no into a Vote.
func VoteOf(granted bool) Vote {
	if granted {
		return Granted
	}
	return Refused
}

// Tallied returns a Question.Decide for answers that are yes or no: the verdict of a rule.
func Tallied(rule func(quorum.Tally) Verdict) func([]quorum.Answer[bool], time.Duration) Verdict {
	return func(answers []quorum.Answer[bool], _ time.Duration) Verdict {
		return rule(quorum.Count(answers, Yes))
	}
}

// Yes returns its argument. It is the grants function of answers that are yes or no.
func Yes(granted bool) bool { return granted }
