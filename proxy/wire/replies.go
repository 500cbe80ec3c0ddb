package wire

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/redlock/resp"
)

// Error is a complete error reply, from "-" to its line end. "" means no error.
type Error string

// Code returns the reply's first word, such as "ERR" or "NOPERM". It returns "" for no
// error.
func (e Error) Code() string {
	code, _, _ := strings.Cut(strings.TrimPrefix(string(e), "-"), " ")
	return code
}

// The texts that sessions send themselves and that Redis has, too. They are those of
// Redis 7.0, byte for byte, because clients compare them.
const (
	OK     = "+OK\r\n"
	Pong   = "+PONG\r\n"
	Queued = "+QUEUED\r\n"
	Reset  = "+RESET\r\n"

	// ErrExecAbortOf begins an error; the reason follows, with its line end.
	ErrExecAbortOf = "-EXECABORT Transaction discarded because of: "

	ErrSyntax            Error = "-ERR syntax error\r\n"
	ErrNotInteger        Error = "-ERR value is not an integer or out of range\r\n"
	ErrIntegerRange      Error = "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n"
	ErrDatabaseIndex     Error = "-ERR DB index is out of range\r\n"
	ErrClientName        Error = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
	ErrClientCap         Error = "-ERR max number of clients reached\r\n"
	ErrNoAuth            Error = "-NOAUTH Authentication required.\r\n"
	ErrWrongPass         Error = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	ErrNoPermKeys        Error = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	ErrNoPermChannels    Error = "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"
	ErrNoPassword        Error = "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n"
	ErrHelloVersion      Error = "-ERR Protocol version is not an integer or out of range\r\n"
	ErrHelloProtocol     Error = "-NOPROTO unsupported protocol version\r\n"
	ErrHelloNoAuth       Error = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n"
	ErrNestedMulti       Error = "-ERR MULTI calls can not be nested\r\n"
	ErrWatchInMulti      Error = "-ERR WATCH inside MULTI is not allowed\r\n"
	ErrExecNoMulti       Error = "-ERR EXEC without MULTI\r\n"
	ErrDiscardNoMulti    Error = "-ERR DISCARD without MULTI\r\n"
	ErrExecAbort         Error = "-EXECABORT Transaction discarded because of previous errors.\r\n"
	ErrNoToken           Error = "-ERR REDLOCK TOKEN needs a lock key, and no lock rule matches this one; REDLOCK RULES has the rules\r\n"
	ErrNotInMulti        Error = "-ERR Command not allowed inside a transaction\r\n"
	ErrScriptFlush       Error = "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n"
	ErrScriptKill        Error = "-NOTBUSY No scripts in execution right now.\r\n"
	ErrCachingOff        Error = "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled\r\n"
	ErrCachingYes        Error = "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.\r\n"
	ErrCachingNo         Error = "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.\r\n"
	ErrTrackingPrefix    Error = "-ERR PREFIX option requires BCAST mode to be enabled\r\n"
	ErrTrackingOptions   Error = "-ERR OPTIN and OPTOUT are not compatible with BCAST\r\n"
	ErrTrackingBoth      Error = "-ERR You can't specify both OPTIN mode and OPTOUT mode\r\n"
	ErrTrackingBroadcast Error = "-ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.\r\n"
	ErrTrackingSwitch    Error = "-ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.\r\n"
	ErrMonitorKeyspace   Error = "-ERR Replica can't interact with the keyspace\r\n"
)

// The texts for cases that a single Redis does not have.
const (
	ErrNoCluster        Error = "-ERR This instance has cluster support disabled\r\n"
	ErrCrossLock        Error = "-CROSSLOCK Keys in request belong to both the lock masters and the upstream server; use a command for each, or name the others as companions of the lock rule\r\n"
	ErrWatchDatabase    Error = "-ERR WATCH on lock keys of two databases is not supported by this proxy; watch those of one\r\n"
	ErrLockInPipe       Error = "-ERR lock commands cannot be used on a connection in this mode, only after RESET\r\n"
	ErrInPipe           Error = "-ERR this command cannot be used on a connection in this mode, only after RESET\r\n"
	ErrHelloInPipe      Error = "-ERR HELLO with AUTH cannot be used on a connection in this mode, only after RESET\r\n"
	ErrSubscribeInMulti Error = "-ERR lock channels cannot be subscribed to inside MULTI through this proxy; subscribe outside\r\n"
	ErrWaitShared       Error = "-ERR WAIT counts the writes of one connection, and yours were sent over shared ones; set upstream_connections: own in the proxy's configuration\r\n"
	ErrUpstreamDown     Error = "-NOUPSTREAM the upstream server of this proxy cannot be reached (deploy/INCIDENTS.md#noupstream)\r\n"
	ErrUpstreamRefused  Error = "-NOUPSTREAM the upstream server refused the user, password or database of this proxy; correct upstream in its configuration\r\n"
	ErrUpstreamProtocol Error = "-NOUPSTREAM the upstream server of this proxy does not speak RESP3; use RESP2 here, or Redis 6 or newer there\r\n"
	ErrUpstreamNone     Error = "-NOUPSTREAM this proxy is for locks only (upstream: none) and does not answer this command; set upstream in its configuration\r\n"
	ErrUpstreamReply    Error = "-NOUPSTREAM the upstream server of this proxy gave an unexpected reply (deploy/INCIDENTS.md#noupstream)\r\n"
	ErrTrackingPrefixes Error = "-ERR too many prefixes for CLIENT TRACKING through this proxy; name fewer\r\n"
	ErrSubscriptions    Error = "-ERR too many subscriptions to the channels of locks and to patterns through this proxy; raise limits.subscriptions (deploy/INCIDENTS.md#limits)\r\n"
	ErrLockKeys         Error = "-ERR the lock command or transaction has more keys than limits.lock_keys of this proxy allows (deploy/INCIDENTS.md#limits)\r\n"
	ErrExecRules        Error = "-EXECABORT Transaction discarded because the lock rules of this proxy have changed since it began; run it again\r\n"
	ErrReservedKey      Error = "-ERR this key is reserved for the proxy's own record of its lock masters; use another one\r\n"
	ErrExecCondition    Error = "-ERR EXEC with a condition on a lock key is not supported by this proxy: WATCH the key instead\r\n"
	ErrElsewhere        Error = "-ERR lock keys cannot be copied or moved between databases through this proxy\r\n"
	ErrMemory           Error = "-ERR this proxy is out of memory for unfinished commands; try again, or raise limits.memory (deploy/INCIDENTS.md#limits)\r\n"
)

// ErrTooLarge refuses what is larger than a limit of the configuration.
func ErrTooLarge(what string, limit Limit) Error {
	return Error("-ERR the " + what + " is larger than limits." + string(limit) + " of this proxy allows (deploy/INCIDENTS.md#limits)\r\n")
}

// ErrMoving refuses a command on a key that a change of the lock rules moved. It says
// when clients may use the key again.
func ErrMoving(until time.Time) Error {
	return Error("-TRYAGAIN the lock rules of this proxy have changed and moved this key; an older lock may still be held in the old place, so the key can be used again from " +
		until.UTC().Format(time.RFC3339) + " (deploy/INCIDENTS.md#tryagain)\r\n")
}

// ErrArity refuses a command with a wrong number of arguments. name is that of the
// command.Spec ("get", "client|setname").
func ErrArity(name string) Error {
	return Error(refusing(name) + "wrong number of arguments for '" + name + "' command\r\n")
}

// refusing is how the refusal of a command begins. That of EXEC ends a transaction.
func refusing(name string) string {
	if name == "exec" {
		return ErrExecAbortOf
	}
	return "-ERR "
}

// Refusing returns the error as the refusal of a command. The error itself does not name the command.
func (e Error) Refusing(name string) Error {
	if name == "exec" {
		return ErrExecAbortOf + e[1:]
	}
	return e
}

// ErrNoPermCommand refuses a command that the client's user may not send.
func ErrNoPermCommand(name string) Error {
	return Error("-NOPERM this user has no permissions to run the '" + name + "' command\r\n")
}

// ErrRestricted refuses a command in RESP2's subscribe mode.
func ErrRestricted(name string) Error {
	return Error(refusing(name) + "Can't execute '" + name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n")
}

// ErrUnsupported refuses a command that no client can use through the proxy.
func ErrUnsupported(name string) Error {
	return Error("-ERR " + strings.ToUpper(strings.ReplaceAll(name, "|", " ")) + " is not supported by this proxy\r\n")
}

// ErrNotWithLockKeys refuses a command without keys in a transaction on lock keys. It
// would run on the masters, where it does not belong.
func ErrNotWithLockKeys(name string) Error {
	return Error("-ERR " + strings.ToUpper(strings.ReplaceAll(name, "|", " ")) + " in a transaction on lock keys is not supported by this proxy\r\n")
}

// ErrNotOnLockKeys refuses a command on lock keys that the masters cannot run.
func ErrNotOnLockKeys(name string) Error {
	return Error("-ERR " + strings.ToUpper(strings.ReplaceAll(name, "|", " ")) + " on lock keys is not supported by this proxy\r\n")
}

// ErrHelloOption refuses HELLO with an unknown or incomplete option.
func ErrHelloOption(option []byte) Error {
	return Error("-ERR Syntax error in HELLO option '" + OneLine(option) + "'\r\n")
}

// ErrUnknownCommand refuses an unknown command. Like Redis, it quotes arguments until
// the quotes exceed 128 bytes.
func ErrUnknownCommand(args [][]byte) Error {
	const quoted = 128
	var rest strings.Builder
	for _, arg := range args[1:] {
		if rest.Len() >= quoted {
			break
		}
		arg = UntilNUL(arg)
		rest.WriteString("'" + string(arg[:min(len(arg), quoted-rest.Len())]) + "' ")
	}
	name := UntilNUL(args[0])
	name = name[:min(len(name), quoted)]
	return Error("-ERR unknown command '" + OneLine(name) + "', with args beginning with: " + OneLine([]byte(rest.String())) + "\r\n")
}

// ErrUntoldCommand refuses a command that the proxy does not know but the upstream may.
func ErrUntoldCommand(name []byte) Error {
	name = UntilNUL(name)
	return Error("-ERR unknown command '" + OneLine(name[:min(len(name), 128)]) +
		"' with a lock key: this proxy could not read the commands of its upstream, so let the proxy's user there run COMMAND\r\n")
}

// ErrUnknownSubcommand refuses a known command with an unknown subcommand.
func ErrUnknownSubcommand(args [][]byte) Error {
	sub := UntilNUL(args[1])
	sub = sub[:min(len(sub), 128)]
	return Error("-ERR unknown subcommand '" + OneLine(sub) + "'. Try " + OneLine([]byte(strings.ToUpper(string(args[0])))) + " HELP.\r\n")
}

// ErrNotALock refuses a command where there is no upstream, because no lock rule matches this key.
func ErrNotALock(key []byte) Error {
	key = key[:min(len(key), 128)]
	return Error("-NOUPSTREAM this proxy is for locks only (upstream: none), and no lock rule matches the key '" + OneLine(key) + "' (deploy/INCIDENTS.md#noupstream)\r\n")
}

// OneLine replaces line ends with spaces, so that quoted input does not end the error's
// line.
func OneLine(text []byte) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(string(text))
}

// FirstError returns the first error among simple replies, or nil.
func FirstError(replies []byte) []byte {
	for line := range bytes.Lines(replies) {
		if line[0] == '-' {
			return line
		}
	}
	return nil
}

// CheckPing returns the error for PING with too many arguments, which its arity allows.
func CheckPing(args [][]byte) Error {
	if len(args) > 2 {
		return ErrArity("ping")
	}
	return ""
}

// AppendPong appends the reply to PING. restricted tells whether the client is in RESP2's
// subscribe mode.
func AppendPong(dst []byte, args [][]byte, restricted bool) []byte {
	switch {
	case restricted:
		return resp.AppendCommand(dst, []byte("pong"), bytes.Join(args[1:], nil))
	case len(args) == 2:
		return redcon.AppendBulk(dst, args[1])
	}
	return append(dst, Pong...)
}

// AppendNull appends the null of the protocol version.
func AppendNull(dst []byte, version Version) []byte {
	if version == RESP3 {
		return append(dst, "_\r\n"...)
	}
	return redcon.AppendNull(dst)
}

// AppendMapHeader appends the header of a map with this number of pairs. In RESP2 a map
// is a flat array.
func AppendMapHeader(dst []byte, pairs int, version Version) []byte {
	if version == RESP3 {
		return appendHeader(dst, '%', pairs)
	}
	return redcon.AppendArray(dst, 2*pairs)
}

// AppendPushHeader appends the header of a message with this number of elements: a push
// in RESP3, an array in RESP2.
func AppendPushHeader(dst []byte, elements int, version Version) []byte {
	if version == RESP3 {
		return appendHeader(dst, '>', elements)
	}
	return redcon.AppendArray(dst, elements)
}

// AppendText appends a text as INFO replies it: a verbatim string in RESP3, a bulk
// string in RESP2.
func AppendText(dst, text []byte, version Version) []byte {
	if version == RESP2 {
		return redcon.AppendBulk(dst, text)
	}
	dst = append(appendHeader(dst, '=', len(text)+len("txt:")), "txt:"...)
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}

func appendHeader(dst []byte, kind byte, n int) []byte {
	dst = strconv.AppendInt(append(dst, kind), int64(n), 10)
	return append(dst, '\r', '\n')
}
