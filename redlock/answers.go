package redlock

import (
	"errors"
	"time"

	"redlock-proxy/redlock/resp"
)

// answer is one master's part in a ballot.
type answer[A any] struct {
	state answerState
	value A
	// covers is the longest TTL that its master's marker had in the same batch.
	covers time.Duration
}

type answerState uint8

const (
	pending    answerState = iota
	unasked                // it was not asked, or certainly did not hear the question
	unknown                // it was asked and will not answer: it may have executed the question
	unable                 // it answered that it cannot serve
	discounted             // it answered, but may have forgotten locks or is no member of the set
	answered
)

// errUnable: the master answered, but that it cannot serve now.
var errUnable = errors.New("the master cannot serve now")

// errBlind: as errUnable, but what it did nevertheless is not known.
var errBlind = errors.New("the master cannot serve now, and does not tell what it did")

// errNotServed: as errUnable, to what locks need of every master.
var errNotServed = errors.New("the master refuses what locks need")

// errNoScript: it does not know a script any more that this stream had loaded.
var errNoScript = errors.New("the master has forgotten a script")

// errMisread: the master's answer is none to what it was asked.
var errMisread = errors.New("the master's reply does not fit what it was asked")

// readAs turns what a reply reads as into the error parse returns.
func readAs(reply []byte, fits bool) error {
	switch {
	case resp.CannotServe(reply):
		return errUnable
	case !fits:
		return errMisread
	}
	return nil
}

// ownAs is readAs for a command or script of our own, which every master
// understands: whatever error it gives but WRONGTYPE says that it cannot serve.
func ownAs(reply []byte, fits bool) error {
	switch {
	case resp.IsWrongType(reply):
		return nil
	case resp.IsError(reply):
		return errNotServed
	case !fits:
		return errMisread
	}
	return nil
}

// failed: it is no vote.
func (s answerState) failed() bool {
	return s == unasked || s == unknown || s == unable || s == discounted
}

// heard: its value is known, whether it is a vote or not.
func (s answerState) heard() bool { return s == answered || s == discounted }

// count tallies answers, granted being those for which grants is true.
func count[A any](answers []answer[A], grants func(A) bool) tally {
	t := tally{masters: len(answers)}
	for _, a := range answers {
		switch {
		case a.state.failed():
			t.failed++
		case a.state == answered && grants(a.value):
			t.granted++
		case a.state == answered:
			t.refused++
		}
	}
	return t
}

// plurality finds the largest group of equal answers among those that count,
// and tallies it as granted.
func plurality[A any](answers []answer[A], counts func(A) bool, equal func(a, b A) bool) (A, tally) {
	var best A
	most := 0
	for i, a := range answers {
		if a.state != answered || !counts(a.value) {
			continue
		}
		n := 0
		for _, other := range answers[i:] {
			if other.state == answered && counts(other.value) && equal(a.value, other.value) {
				n++
			}
		}
		if n > most {
			best, most = a.value, n
		}
	}
	t := count(answers, func(A) bool { return false })
	t.granted, t.refused = most, t.refused-most
	return best, t
}
