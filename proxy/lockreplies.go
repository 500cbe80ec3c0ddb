package proxy

import (
	"strings"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// What the lock plane says on its own account, beside the texts that sessions
// share with it. Redis's own words where Redis has some, to the letter.
const (
	errorTooManyKeys    = "-ERR Number of keys can't be greater than number of args\r\n"
	errorNegativeKeys   = "-ERR Number of keys can't be negative\r\n"
	errorNoScript       = "-NOSCRIPT No matching script. Please use EVAL.\r\n"
	errorExpireNX       = "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"
	errorExpireGTLT     = "-ERR GT and LT options at the same time are not compatible\r\n"
	errorReservedKey    = "-ERR this key is reserved for the proxy's own record of its lock masters\r\n"
	errorElsewhere      = "-ERR lock keys cannot be copied or moved between databases through this proxy\r\n"
	errorHolderVanished = "-ERR the lock was not taken and its holder could not be read\r\n"
)

func errorExpireTime(name string) string {
	return "-ERR invalid expire time in '" + name + "' command\r\n"
}

func errorExpireOption(option []byte) string {
	return "-ERR Unsupported option " + wire.OneLine([]byte(strings.TrimRight(string(option), "\r\n"))) + "\r\n"
}

func errorUnknownSubcommand(args [][]byte) string {
	sub := wire.UntilNUL(args[1])
	sub = sub[:min(len(sub), 128)]
	return "-ERR unknown subcommand '" + wire.OneLine(sub) + "'. Try " + wire.OneLine([]byte(strings.ToUpper(string(args[0])))) + " HELP.\r\n"
}

func errorNotOnLockKeys(name string) string {
	return "-ERR " + strings.ToUpper(name) + " on lock keys is not supported by this proxy\r\n"
}

// wording is how an outcome reads for the client.
type wording uint8

const (
	readsStatus wording = iota // won: OK, lost: nil
	readsOK                    // OK either way
	readsOne                   // won: 1, lost: 0
	readsNumber                // Outcome.Number
	readsValue                 // Outcome.Value, nil if absent
	readsValues                // answer.values, each nil if absent
	readsReply                 // Outcome.Reply as it is
)

// answer is the end of a lock command. Reply, metric and log are all made of
// it, so they cannot disagree.
type answer struct {
	kind     redlock.Kind
	rejected string // a whole error reply that needed no master; the rest is empty then
	outcome  redlock.Outcome
	reads    wording
	values   [][]byte
}

func rejection(kind redlock.Kind, reply string) answer {
	return answer{kind: kind, rejected: reply}
}

// verdictError is the end of a command whose answer is an error, but for a lost
// quorum.
const verdictError = "error"

// verdicts are all that answer.verdict returns.
var verdicts = []string{redlock.Won.String(), redlock.Lost.String(), redlock.NoQuorum.String(), verdictError}

// verdict names the end in metrics and logs.
func (a answer) verdict() string {
	if a.rejected != "" || a.outcome.Verdict != redlock.NoQuorum && a.outcome.Err != "" {
		return verdictError
	}
	return a.outcome.Verdict.String()
}

// append writes the answer's one reply.
func (a answer) append(dst []byte, version wire.Version) []byte {
	switch {
	case a.rejected != "":
		return append(dst, a.rejected...)
	case a.outcome.Verdict == redlock.NoQuorum:
		return appendErrorText(dst, a.outcome.NoQuorumError())
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
