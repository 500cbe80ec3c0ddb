package wire

import (
	"strconv"

	"github.com/tidwall/redcon"

	"redlock-proxy/redlock/resp"
)

// DefaultUser is Redis's name for a user that gives no name.
const DefaultUser = "default"

// Hello holds the parsed arguments of HELLO. Its slices are parts of the arguments.
type Hello struct {
	Number   int // of the requested version; 0: the client keeps its version
	User     []byte
	Password []byte
	Login    bool
	Name     []byte
	Named    bool
}

// Version returns the requested version. The request must name one.
func (h Hello) Version() Version {
	if h.Number == RESP3.Number() {
		return RESP3
	}
	return RESP2
}

// Forward returns the HELLO for the upstream: the protocol and the name, never the password.
// The request must name a version.
func (h Hello) Forward() []byte {
	args := [][]byte{[]byte("HELLO"), strconv.AppendInt(nil, int64(h.Number), 10)}
	if h.Named {
		args = append(args, []byte("SETNAME"), h.Name)
	}
	return resp.AppendCommand(nil, args...)
}

// ParseHello parses the arguments of HELLO. It returns the error that Redis would answer, or
// "".
func ParseHello(args [][]byte) (request Hello, refusal Error) {
	if len(args) > 1 {
		version, ok := resp.ParseDecimal(args[1])
		if !ok {
			return request, ErrHelloVersion
		}
		if version < 2 || version > 3 {
			return request, ErrHelloProtocol
		}
		request.Number = int(version)
	}
	for i := 2; i < len(args); i++ {
		switch more := len(args) - 1 - i; {
		case more >= 2 && IsWord(args[i], "AUTH"):
			request.Login, request.User, request.Password = true, args[i+1], args[i+2]
			i += 2
		case more >= 1 && IsWord(args[i], "SETNAME"):
			request.Named, request.Name = true, args[i+1]
			if !IsClientName(request.Name) {
				return request, ErrClientName
			}
			i++
		default:
			return request, ErrHelloOption(args[i])
		}
	}
	return request, ""
}

// LogsIn tells whether a command logs a client in. name is that of the command's
// specification.
func LogsIn(name string, args [][]byte) bool {
	if name == "hello" {
		request, _ := ParseHello(args)
		return request.Login
	}
	return name == "auth"
}

// AppendHello appends the reply to HELLO. It describes the proxy as one ordinary Redis of
// this release. id is the client's.
func AppendHello(dst []byte, version Version, release string, id int64) []byte {
	dst = AppendMapHeader(dst, 7, version)
	for _, text := range []string{"server", "redis", "version", release, "proto"} {
		dst = redcon.AppendBulkString(dst, text)
	}
	dst = redcon.AppendInt(dst, int64(version.Number()))
	dst = redcon.AppendBulkString(dst, "id")
	dst = redcon.AppendInt(dst, id)
	for _, text := range []string{"mode", "standalone", "role", "master", "modules"} {
		dst = redcon.AppendBulkString(dst, text)
	}
	return redcon.AppendArray(dst, 0)
}

// longestClientName limits the memory that idle clients take.
const longestClientName = 64 << 10

// IsClientName tells whether a name may be set. A space in a name would make CLIENT LIST
// ambiguous.
func IsClientName(name []byte) bool {
	if len(name) > longestClientName {
		return false
	}
	for _, c := range name {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}

// ParseDatabase parses SELECT's argument by Redis's rules for numbers.
func ParseDatabase(arg []byte) (index int, refusal Error) {
	number, ok := resp.ParseDecimal(arg)
	switch {
	case !ok:
		return 0, ErrNotInteger
	case number < -1<<31 || number > 1<<31-1:
		return 0, ErrIntegerRange
	}
	return int(number), ""
}

// ReplyMode is the state that CLIENT REPLY has set. The zero value is ON.
type ReplyMode struct{ off, skip bool }

// Next reports whether the client does not want the reply to the next command. It uses up a
// SKIP.
func (m *ReplyMode) Next() (silent bool) {
	silent = m.off || m.skip
	m.skip = false
	return silent
}

// IsOff tells whether CLIENT REPLY OFF was the last mode.
func (m *ReplyMode) IsOff() bool { return m.off }

// Set performs CLIENT REPLY and returns the reply, which is empty after OFF and SKIP.
func (m *ReplyMode) Set(mode []byte) (reply string) {
	switch {
	case IsWord(mode, "ON"):
		*m = ReplyMode{}
		return OK
	case IsWord(mode, "OFF"):
		m.off = true
	case IsWord(mode, "SKIP"):
		m.skip = !m.off
	default:
		return string(ErrSyntax)
	}
	return ""
}
