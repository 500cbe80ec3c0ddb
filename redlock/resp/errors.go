package resp

import "bytes"

// IsError tells whether a reply is an error of RESP2 or RESP3.
func IsError(reply []byte) bool { return len(reply) > 0 && (reply[0] == '-' || reply[0] == '!') }

// ErrorText returns an error reply without its "-" and line end.
func ErrorText(reply []byte) string { return string(errorText(reply)) }

func errorText(reply []byte) []byte {
	if reply[0] == '!' {
		if v, ok := ParseBulk(reply); ok {
			return v
		}
	}
	return bytes.TrimRight(reply[1:], "\r\n")
}

// IsNoScript tells whether the server does not know the script of an EVALSHA.
func IsNoScript(reply []byte) bool { return bytes.HasPrefix(reply, []byte("-NOSCRIPT")) }

// tooLong stands in the place of a reply that a Reader dropped.
var tooLong = []byte("-TOOLONG longer than the limit\r\n")

// IsTooLong tells whether a Reader dropped the reply because it was too long. What the
// server did is unknown then.
func IsTooLong(reply []byte) bool { return bytes.Equal(reply, tooLong) }

// ErrorCode returns the first word of an error reply, such as WRONGTYPE.
func ErrorCode(reply []byte) []byte {
	text := errorText(reply)
	if end := bytes.IndexAny(text, " \r\n"); end >= 0 {
		text = text[:end]
	}
	return text
}

// CannotServe tells whether a reply says that the master cannot serve now, so that the
// reply is no vote. Every other error is an answer. EXECABORT is an answer only if a
// command was refused while it was queued, which the caller knows.
func CannotServe(reply []byte) bool {
	if !IsError(reply) {
		return false
	}
	switch string(ErrorCode(reply)) {
	case "LOADING", "BUSY", "NOAUTH", "EXECABORT":
		return true
	}
	return CannotServeInside(reply)
}

// CannotServeInside is CannotServe for a reply inside EXEC's. The other codes mean that
// nothing is executed at all, so inside EXEC they are a script's own words.
func CannotServeInside(reply []byte) bool {
	if !IsError(reply) {
		return false
	}
	switch string(InnerCode(reply)) {
	case "READONLY", "MASTERDOWN", "MISCONF", "OOM", "NOPERM", "NOREPLICAS":
		return true
	}
	return isForbiddenInside(reply)
}

// InnerCode is ErrorCode, but for an error that ended a script it is the code of that one.
// Redis up to 6.2 wraps it.
func InnerCode(reply []byte) []byte {
	if bytes.HasPrefix(reply, []byte("-ERR Error running script")) {
		if i := bytes.LastIndex(reply, []byte(": -")); i >= 0 {
			return ErrorCode(reply[i+2:])
		}
	}
	return ErrorCode(reply)
}

// IsForbidden tells whether this connection's user lacks a right.
func IsForbidden(reply []byte) bool {
	return IsError(reply) && string(ErrorCode(reply)) == "NOPERM" || isForbiddenInside(reply)
}

// isForbiddenInside goes by the text: Redis 7 has no code for a right that a script lacks.
func isForbiddenInside(reply []byte) bool {
	return IsError(reply) && bytes.Contains(reply, []byte("The user executing the script can't "))
}

// IsWrongType tells whether a key holds a value of another type. It is the only error
// to one of the proxy's own commands that counts as an answer. In a script's error, the
// code may follow other words.
func IsWrongType(reply []byte) bool {
	return IsError(reply) && bytes.Contains(reply, []byte("WRONGTYPE "))
}
