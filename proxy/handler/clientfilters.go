package handler

import (
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// Redis's errors. Those about MAXAGE are of Redis 7.4.
const (
	errNoSuchClient wire.Error = "-ERR No such client\r\n"
	errClientID     wire.Error = "-ERR Invalid client ID\r\n"
	errKillID       wire.Error = "-ERR client-id should be greater than 0\r\n"
	errMaxAge       wire.Error = "-ERR maxage is not an integer or out of range\r\n"
	errMaxAgeLow    wire.Error = "-ERR maxage should be greater than 0\r\n"
)

// errNoSuchUser is the reply to CLIENT KILL USER.
func errNoSuchUser(name []byte) wire.Error {
	return wire.Error("-ERR No such user '" + wire.OneLine(wire.UntilNUL(name)) + "'\r\n")
}

// typeOf returns the type with this name.
func typeOf(name []byte) (clientType, wire.Error) {
	for _, t := range []struct {
		word  string
		means clientType
	}{{"NORMAL", typeNormal}, {"SLAVE", typeReplica}, {"REPLICA", typeReplica}, {"PUBSUB", typePubsub}, {"MASTER", typeMaster}} {
		if wire.IsWord(name, t.word) {
			return t.means, ""
		}
	}
	return typeAny, wire.Error("-ERR Unknown client type '" + wire.OneLine(wire.UntilNUL(name)) + "'\r\n")
}

// noClientID is an id that no client of a Redis ever has.
const noClientID = "9223372036854775807"

// A listFilter says which clients CLIENT LIST shows.
type listFilter struct {
	kind clientType
	ids  []int64 // in this order; nil: all clients
}

// parseList parses CLIENT LIST as Redis 7 does.
func parseList(args [][]byte) (f listFilter, refusal wire.Error) {
	switch {
	case len(args) == 4 && wire.IsWord(args[2], "TYPE"):
		f.kind, refusal = typeOf(args[3])
	case len(args) > 3 && wire.IsWord(args[2], "ID"):
		for _, arg := range args[3:] {
			id, ok := resp.ParseDecimal(arg)
			if !ok {
				return f, errClientID
			}
			f.ids = append(f.ids, id)
		}
	case len(args) != 2:
		return f, wire.ErrSyntax
	}
	return f, refusal
}

// A killFilter says whom CLIENT KILL ends.
type killFilter struct {
	old            bool   // the form with an address alone, which replies OK or an error
	address, local string // "": any
	user           []byte // nil: any
	kind           clientType
	id             int64 // 0: any
	oldest         time.Duration
	self           bool // even the client that asks
}

// parseKill parses CLIENT KILL as Redis 7 does. It does not know which users exist.
func parseKill(args [][]byte) (f killFilter, refusal wire.Error) {
	if len(args) == 3 {
		return killFilter{old: true, address: string(wire.UntilNUL(args[2])), self: true}, ""
	}
	for i := 2; i < len(args); i += 2 {
		if i+1 == len(args) {
			return f, wire.ErrSyntax
		}
		if refusal = f.set(args[i], args[i+1]); refusal != "" {
			return f, refusal
		}
	}
	return f, ""
}

func (f *killFilter) set(option, value []byte) (refusal wire.Error) {
	switch {
	case wire.IsWord(option, "ID"):
		id, ok := resp.ParseDecimal(value)
		if !ok || id < 1 {
			return errKillID
		}
		f.id = id
	case wire.IsWord(option, "TYPE"):
		f.kind, refusal = typeOf(value)
	case wire.IsWord(option, "ADDR"):
		f.address = string(wire.UntilNUL(value))
	case wire.IsWord(option, "LADDR"):
		f.local = string(wire.UntilNUL(value))
	case wire.IsWord(option, "USER"):
		f.user = value
	case wire.IsWord(option, "MAXAGE"):
		seconds, ok := resp.ParseDecimal(value)
		switch {
		case !ok:
			return errMaxAge
		case seconds <= 0:
			return errMaxAgeLow
		}
		const most = int64(1<<63-1) / int64(time.Second)
		f.oldest = time.Duration(min(seconds, most)) * time.Second
	case wire.IsWord(option, "SKIPME") && wire.IsWord(value, "YES"):
		f.self = false
	case wire.IsWord(option, "SKIPME") && wire.IsWord(value, "NO"):
		f.self = true
	default:
		return wire.ErrSyntax
	}
	return refusal
}

// matches tells whether the filter is about this client. self is true for the client that
// asks.
func (f *killFilter) matches(s *clientStatus, self bool) bool {
	return (f.address == "" || f.address == s.address) &&
		(f.local == "" || f.local == s.local) &&
		(f.user == nil || string(f.user) == s.user()) &&
		(f.kind == typeAny || f.kind == s.kind()) &&
		(f.id == 0 || f.id == s.id) &&
		s.age >= f.oldest &&
		(f.self || !self)
}
