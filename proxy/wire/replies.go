package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"
)

// Every text that sessions send on their own account. Where Redis has words
// for it they are Redis 7.0's, to the letter, since clients compare them.
const (
	OK     = "+OK\r\n"
	Pong   = "+PONG\r\n"
	Queued = "+QUEUED\r\n"
	Reset  = "+RESET\r\n"

	ErrSyntax            = "-ERR syntax error\r\n"
	ErrNotInteger        = "-ERR value is not an integer or out of range\r\n"
	ErrIntegerRange      = "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n"
	ErrDatabaseIndex     = "-ERR DB index is out of range\r\n"
	ErrClientName        = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
	ErrClientCap         = "-ERR max number of clients reached\r\n"
	ErrNoAuth            = "-NOAUTH Authentication required.\r\n"
	ErrWrongPass         = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	ErrNoPermKeys        = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	ErrNoPermChannels    = "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"
	ErrNoPassword        = "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n"
	ErrHelloVersion      = "-ERR Protocol version is not an integer or out of range\r\n"
	ErrHelloProtocol     = "-NOPROTO unsupported protocol version\r\n"
	ErrHelloNoAuth       = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n"
	ErrNestedMulti       = "-ERR MULTI calls can not be nested\r\n"
	ErrWatchInMulti      = "-ERR WATCH inside MULTI is not allowed\r\n"
	ErrExecNoMulti       = "-ERR EXEC without MULTI\r\n"
	ErrDiscardNoMulti    = "-ERR DISCARD without MULTI\r\n"
	ErrExecArity         = "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command\r\n"
	ErrExecAbort         = "-EXECABORT Transaction discarded because of previous errors.\r\n"
	ErrExecAbortOf       = "-EXECABORT Transaction discarded because of: " // and the reason, with its line end
	ErrNotInMulti        = "-ERR Command not allowed inside a transaction\r\n"
	ErrScriptFlush       = "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n"
	ErrScriptKill        = "-NOTBUSY No scripts in execution right now.\r\n"
	ErrCachingOff        = "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled\r\n"
	ErrCachingYes        = "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.\r\n"
	ErrCachingNo         = "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.\r\n"
	ErrTrackingPrefix    = "-ERR PREFIX option requires BCAST mode to be enabled\r\n"
	ErrTrackingOptions   = "-ERR OPTIN and OPTOUT are not compatible with BCAST\r\n"
	ErrTrackingBoth      = "-ERR You can't specify both OPTIN mode and OPTOUT mode\r\n"
	ErrTrackingBroadcast = "-ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.\r\n"
	ErrTrackingSwitch    = "-ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.\r\n"
	ErrMonitorKeyspace   = "-ERR Replica can't interact with the keyspace\r\n"
)

// Texts for what no single Redis can meet.
const (
	ErrNoCluster        = "-ERR This instance has cluster support disabled\r\n"
	ErrCrossLock        = "-CROSSLOCK Keys in request belong to both the lock masters and the upstream server\r\n"
	ErrWatchDatabase    = "-ERR WATCH on lock keys of two databases is not supported by this proxy\r\n"
	ErrLockInPipe       = "-ERR lock commands cannot be used on a connection in this mode, only after RESET\r\n"
	ErrHelloInPipe      = "-ERR HELLO with AUTH cannot be used on a connection in this mode, only after RESET\r\n"
	ErrSubscribeInMulti = "-ERR lock channels cannot be subscribed to inside MULTI through this proxy\r\n"
	ErrUpstreamDown     = "-NOUPSTREAM the upstream server of this proxy cannot be reached\r\n"
	ErrUpstreamRefused  = "-NOUPSTREAM the upstream server of this proxy refused its login or its database\r\n"
	ErrUpstreamProtocol = "-NOUPSTREAM the upstream server of this proxy does not speak RESP3\r\n"
	ErrUpstreamNone     = "-NOUPSTREAM this proxy serves lock keys only, it has no upstream server for other commands\r\n"
	ErrUpstreamReply    = "-NOUPSTREAM the upstream server of this proxy gave an unexpected reply\r\n"
	ErrTrackingPrefixes = "-ERR too many prefixes for CLIENT TRACKING through this proxy\r\n"
	ErrSubscriptions    = "-ERR too many subscriptions to the channels of locks and to patterns through this proxy\r\n"
	ErrTransactionSize  = "-ERR the transaction is larger than this proxy can hold\r\n"
	ErrExecRules        = "-EXECABORT Transaction discarded because the lock rules of this proxy have changed since it began\r\n"
	ErrMemory           = "-ERR this proxy is out of memory for unfinished commands\r\n"
)

// ErrMoving tells when a key may be used again that has changed its home
// with the lock rules.
func ErrMoving(until time.Time) string {
	return "-TRYAGAIN the lock rules of this proxy have changed, and with them where this key is kept; a lock from before may still be held there, so the key can be used again from " +
		until.UTC().Format(time.RFC3339) + "\r\n"
}

// ErrArity words a wrong number of arguments; name is a specification's
// ("get", "client|setname").
func ErrArity(name string) string {
	return "-ERR wrong number of arguments for '" + name + "' command\r\n"
}

// ErrNoPermCommand words a command that the client's user may not give.
func ErrNoPermCommand(name string) string {
	return "-NOPERM this user has no permissions to run the '" + name + "' command\r\n"
}

// ErrRestricted words what RESP2's subscribe mode refuses.
func ErrRestricted(name string) string {
	code := "-ERR "
	if name == "exec" {
		code = "-EXECABORT Transaction discarded because of: "
	}
	return code + "Can't execute '" + name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"
}

// ErrUnsupported words a command that no client can use through the proxy.
func ErrUnsupported(name string) string {
	return "-ERR " + strings.ToUpper(strings.ReplaceAll(name, "|", " ")) + " is not supported by this proxy\r\n"
}

// ErrNotWithLockKeys refuses a command without keys in a transaction on lock
// keys: it would run on the masters, where it does not belong.
func ErrNotWithLockKeys(name string) string {
	return "-ERR " + strings.ToUpper(strings.ReplaceAll(name, "|", " ")) + " in a transaction on lock keys is not supported by this proxy\r\n"
}

func ErrHelloOption(option []byte) string {
	return "-ERR Syntax error in HELLO option '" + OneLine(option) + "'\r\n"
}

// ErrUnknownCommand quotes as much of the arguments as Redis does: until
// 128 bytes are exceeded.
func ErrUnknownCommand(args [][]byte) string {
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
	return "-ERR unknown command '" + OneLine(name) + "', with args beginning with: " + OneLine([]byte(rest.String())) + "\r\n"
}

// OneLine keeps quoted input from ending the error line early.
func OneLine(text []byte) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(string(text))
}

// AppendNull appends the null of the protocol spoken.
func AppendNull(dst []byte, version Version) []byte {
	if version == RESP3 {
		return append(dst, "_\r\n"...)
	}
	return redcon.AppendNull(dst)
}

// AppendMapHeader opens a map of pairs, which is a flat array in RESP2.
func AppendMapHeader(dst []byte, pairs int, version Version) []byte {
	if version == RESP3 {
		dst = append(dst, '%')
		dst = strconv.AppendInt(dst, int64(pairs), 10)
		return append(dst, '\r', '\n')
	}
	return redcon.AppendArray(dst, 2*pairs)
}

// AppendPushHeader opens a message of so many elements: a push in RESP3.
func AppendPushHeader(dst []byte, elements int, version Version) []byte {
	if version == RESP3 {
		dst = append(dst, '>')
		dst = strconv.AppendInt(dst, int64(elements), 10)
		return append(dst, '\r', '\n')
	}
	return redcon.AppendArray(dst, elements)
}

// AppendText appends a text as INFO sends it: verbatim in RESP3.
func AppendText(dst, text []byte, version Version) []byte {
	if version == RESP2 {
		return redcon.AppendBulk(dst, text)
	}
	dst = append(dst, '=')
	dst = strconv.AppendInt(dst, int64(len(text)+len("txt:")), 10)
	dst = append(dst, "\r\ntxt:"...)
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}
