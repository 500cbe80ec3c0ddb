package handler

import (
	"cmp"
	"net"
	"strconv"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// published is what a session's goroutine lets the others know of its client.
type published struct {
	upstream.ClientSettings
	User        string // "": not logged in
	Queued      int    // commands after MULTI; -1: there was no MULTI
	QueuedBytes int    // the memory that they take here
	Monitors    bool
	Tracks      bool  // CLIENT TRACKING is on
	Broadcast   bool  // with BCAST
	Caching     bool  // CLIENT CACHING was sent for the next command
	Redirect    int64 // the client of CLIENT TRACKING REDIRECT, or 0
}

// clientStatus is everything that CLIENT LIST shows of a client.
type clientStatus struct {
	published
	command        *route.Spec // the last one; nil: none, or an unknown one
	id             int64
	address, local string
	age, idle      time.Duration
	subscriptions  [3]int // by wire.Family
	waits          string // for whom the client waits: locks, upstream or nobody
}

// clientType is a word of CLIENT LIST TYPE.
type clientType uint8

const (
	typeAny clientType = iota
	typeNormal
	typeReplica // no client of the proxy is one
	typePubsub
	typeMaster // likewise
)

func (s *clientStatus) kind() clientType {
	if s.subscriptions != [3]int{} {
		return typePubsub
	}
	return typeNormal
}

// flags are those of Redis, in Redis's order.
func (s *clientStatus) flags(dst []byte) []byte {
	before := len(dst)
	for _, flag := range []struct {
		set    bool
		letter byte
	}{
		{s.Monitors, 'O'}, {s.kind() == typePubsub, 'P'}, {s.Queued >= 0, 'x'},
		{s.waits != waitsForNobody && s.command != nil && s.command.Blocking(), 'b'},
		{s.Tracks, 't'}, {s.Tracks && s.Broadcast, 'B'}, {s.NoEvict, 'e'}, {s.NoTouch, 'T'},
	} {
		if flag.set {
			dst = append(dst, flag.letter)
		}
	}
	if len(dst) == before {
		dst = append(dst, 'N')
	}
	return dst
}

const (
	waitsForLocks    = "locks"
	waitsForUpstream = "upstream"
	waitsForNobody   = "nobody"
)

// line appends the client's line in CLIENT LIST. The fields are those of Redis 7.2, in its
// order, and no others: go-redis before 9.19 refuses a line with a field that it does not know.
// Sessions share their buffers, so the fields about buffers are 0, and fd is -1 as for a client
// without a socket in Redis.
func (s *clientStatus) line(dst []byte) []byte {
	text := func(field, value string) { dst = append(append(dst, field...), value...) }
	number := func(field string, n int64) { dst = strconv.AppendInt(append(dst, field...), n, 10) }
	number("id=", s.id)
	text(" addr=", s.address)
	text(" laddr=", s.local)
	text(" fd=-1 name=", s.Name)
	number(" age=", int64(s.age/time.Second))
	number(" idle=", int64(s.idle/time.Second))
	dst = s.flags(append(dst, " flags="...))
	number(" db=", int64(s.DB))
	number(" sub=", int64(s.subscriptions[wire.FamilyChannel]))
	number(" psub=", int64(s.subscriptions[wire.FamilyPattern]))
	number(" ssub=", int64(s.subscriptions[wire.FamilyShard]))
	number(" multi=", int64(s.Queued))
	text(" qbuf=0 qbuf-free=0 argv-mem=0", "")
	number(" multi-mem=", int64(s.QueuedBytes))
	text(" rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=", s.commandName())
	text(" user=", s.user())
	number(" redir=", s.redirection())
	number(" resp=", int64(s.Version.Number()))
	text(" lib-name=", s.LibName)
	text(" lib-ver=", s.LibVersion)
	return append(dst, '\n')
}

// user is the name that Redis gives to a client that is not logged in, or the client's own.
func (s *clientStatus) user() string { return cmp.Or(s.User, wire.DefaultUser) }

func (s *clientStatus) commandName() string {
	if s.command == nil {
		return "NULL"
	}
	return s.command.Name
}

// redirection is the reply to CLIENT GETREDIR.
func (f *published) redirection() int64 {
	if !f.Tracks {
		return -1
	}
	return f.Redirect
}

// addresses returns both addresses of a connection as Redis shows them. Both are the path if
// it came over a Unix socket.
func addresses(remote, local net.Addr) (string, string) {
	if local.Network() == "unix" {
		path := local.String() + ":0"
		return path, path
	}
	return remote.String(), local.String()
}
