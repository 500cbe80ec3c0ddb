package lock

import (
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// These are the error replies of the lock plane alone. Package wire has those that
// sessions use too. Where Redis has an error text, it stands here to the letter.
const (
	errorTooManyKeys    wire.Error = "-ERR Number of keys can't be greater than number of args\r\n"
	errorNegativeKeys   wire.Error = "-ERR Number of keys can't be negative\r\n"
	errorNoScript       wire.Error = "-NOSCRIPT No matching script. Please use EVAL.\r\n"
	errorCursor         wire.Error = "-ERR invalid cursor\r\n"
	errorExpireNX       wire.Error = "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"
	errorExpireGTLT     wire.Error = "-ERR GT and LT options at the same time are not compatible\r\n"
	errorHolderVanished wire.Error = "-ERR the lock was not taken and its holder could not be read; try again\r\n"
)

var errorLongReply = wire.ErrTooLarge("reply", "lock_reply")

func errorExpireTime(name string) wire.Error {
	return wire.Error("-ERR invalid expire time in '" + name + "' command\r\n")
}

func errorExpireOption(option []byte) wire.Error {
	return wire.Error("-ERR Unsupported option " + wire.OneLine([]byte(strings.TrimRight(string(option), "\r\n"))) + "\r\n")
}

// wording is the form of the reply to an outcome.
type wording uint8

const (
	readsStatus wording = iota // won: OK, lost: nil
	readsOK                    // OK in both cases
	readsOne                   // won: 1, lost: 0
	readsNumber                // Outcome.Number
	readsValue                 // Outcome.Value, nil if absent
	readsValues                // answer.values, each nil if absent
	readsReply                 // Outcome.Reply, unchanged
)

// answer is the end of a lock command. The reply, and all that record.go tells others, are
// made from it, so they cannot disagree.
type answer struct {
	kind     redlock.Kind
	rejected wire.Error // the reply if no master was needed; then the rest is empty
	outcome  redlock.Outcome
	reads    wording
	ttl      time.Duration // that the command gave the lock; 0: none
	keepsTTL bool          // it gave the lock no TTL of its own
	waited   bool          // it stood in the line of its lock
	values   [][]byte
	each     []redlock.Outcome // of DEL and UNLINK on several keys: one for each of distinctKeys
}

func rejection(kind redlock.Kind, reply wire.Error) answer {
	return answer{kind: kind, rejected: reply}
}

const verdictError = "error" // any error but a lost quorum

// Verdicts are all values of the verdict that Meter.LockCommand gets.
func Verdicts() []string {
	return []string{redlock.Won.String(), redlock.Lost.String(), redlock.NoQuorum.String(), verdictError}
}

// verdict is the answer's name in metrics and logs.
func (a answer) verdict() string {
	if a.rejected != "" || a.outcome.Abandoned || a.outcome.Verdict != redlock.NoQuorum && a.outcome.Err != "" {
		return verdictError
	}
	return a.outcome.Verdict.String()
}

// took tells whether the command took or extended a lock.
func (a answer) took() bool {
	if a.rejected != "" || a.outcome.Verdict != redlock.Won || a.outcome.Err != "" {
		return false
	}
	switch a.kind {
	case redlock.KindAcquire, redlock.KindExtend, redlock.KindSwap:
		return true
	}
	return a.outcome.Lives > 0
}

// append appends the answer's one reply to dst.
func (a answer) append(dst []byte, version wire.Version) []byte {
	switch {
	case a.rejected != "":
		return append(dst, a.rejected...)
	case a.outcome.Verdict == redlock.NoQuorum || a.outcome.Abandoned:
		return appendErrorText(dst, quorumLost(a.outcome))
	case a.outcome.Err != "":
		return appendErrorText(dst, a.outcome.Err)
	}
	won := a.outcome.Verdict == redlock.Won
	switch a.reads {
	case readsOK:
		return append(dst, wire.OK...)
	case readsOne:
		if won {
			return append(dst, ":1\r\n"...)
		}
		return append(dst, ":0\r\n"...)
	case readsNumber:
		return redcon.AppendInt(dst, a.outcome.Number)
	case readsValue:
		return appendBulkOrNull(dst, a.outcome.Value, version)
	case readsValues:
		dst = redcon.AppendArray(dst, len(a.values))
		for _, value := range a.values {
			dst = appendBulkOrNull(dst, value, version)
		}
		return dst
	case readsReply:
		return append(dst, a.outcome.Reply...)
	default:
		if won {
			return append(dst, wire.OK...)
		}
		return wire.AppendNull(dst, version)
	}
}

func appendErrorText(dst []byte, text string) []byte {
	dst = append(dst, '-')
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}

func appendBulkOrNull(dst, value []byte, version wire.Version) []byte {
	if value == nil {
		return wire.AppendNull(dst, version)
	}
	return redcon.AppendBulk(dst, value)
}

// quorumLost is the error of an outcome without a quorum.
func quorumLost(o redlock.Outcome) string {
	return o.NoQuorumError() + " (deploy/INCIDENTS.md#quorumlost)"
}
