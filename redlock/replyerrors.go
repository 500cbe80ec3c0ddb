package redlock

import (
	"errors"

	"redlock-proxy/redlock/resp"
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
