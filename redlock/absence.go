package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
)

// Why a master is away, for people: the same words at each redial, so that a
// cause is told once, and nothing that is secret.

const (
	notConnected = "it is not connected"
	// maxCause bounds what a server's own words may take of a reason.
	maxCause = 200
)

var (
	// onSocket is how package net begins an error: what was done, on which
	// sockets, of which ours is another one each time, and by which system call.
	onSocket = regexp.MustCompile(`\b(?:dial|read|write) (?:tcp|udp|unix)\w*(?: \S+)?: (?:(?:connect|read|write): )?`)
	// atTime is where an expired certificate's error says what time it is now.
	atTime = regexp.MustCompile(`: current time \S+ is .*`)
)

// absence words why a connection could not be opened or has ended.
func absence(why error) string {
	cause := causeOf(why)
	switch {
	case cause == nil:
		return notConnected
	case cause == io.EOF:
		return notConnected + ": it has ended the connection"
	case cause == context.DeadlineExceeded || errors.Is(cause, net.ErrClosed):
		return notConnected + ": it did not answer in time"
	}
	text := atTime.ReplaceAllString(onSocket.ReplaceAllString(cause.Error(), ""), "")
	return notConnected + ": " + oneLine(text, maxCause)
}

// causeOf is the error that came first of what ended a connection. Its other
// side, and what was asked on it, then fail because it is closed.
func causeOf(why error) error {
	joined, ok := why.(interface{ Unwrap() []error })
	if !ok {
		return why
	}
	var first error
	for _, err := range joined.Unwrap() {
		if first == nil || errors.Is(first, net.ErrClosed) {
			first = causeOf(err)
		}
	}
	return first
}

// oneLine is a foreign text without control characters, cut to so many bytes.
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// turnedAway words an error reply to a command with which a connection begins.
// One to AUTH may repeat what was sent, as that of a server does which does not
// know the command.
func turnedAway(command string, reply []byte, password string) error {
	answer := errorText(reply)
	if command == "AUTH" {
		answer, _, _ = strings.Cut(answer, ", with args")
		if strings.Contains(answer, password) {
			answer = string(errorCode(reply))
		}
	}
	return fmt.Errorf("%s refused: %s", command, answer)
}
