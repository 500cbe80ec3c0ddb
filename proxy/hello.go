package proxy

import (
	"bytes"
	"strconv"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// helloReply describes the proxy as the one Redis it stands for.
func (s *session) helloReply() []byte {
	reply := wire.AppendMapHeader(nil, 7, s.client.version)
	reply = redcon.AppendBulkString(reply, "server")
	reply = redcon.AppendBulkString(reply, "redis")
	reply = redcon.AppendBulkString(reply, "version")
	reply = redcon.AppendBulkString(reply, s.server.shownVersion())
	reply = redcon.AppendBulkString(reply, "proto")
	reply = redcon.AppendInt(reply, int64(s.client.version.Number()))
	reply = redcon.AppendBulkString(reply, "id")
	reply = redcon.AppendInt(reply, s.id)
	reply = redcon.AppendBulkString(reply, "mode")
	reply = redcon.AppendBulkString(reply, "standalone")
	reply = redcon.AppendBulkString(reply, "role")
	reply = redcon.AppendBulkString(reply, "master")
	reply = redcon.AppendBulkString(reply, "modules")
	return redcon.AppendArray(reply, 0)
}

// helloRequest is what HELLO asks for.
type helloRequest struct {
	version  int // 0: as it is
	user     []byte
	password []byte
	login    bool
	name     []byte
	named    bool
}

// speaks is the version that is asked for. Only where one is.
func (r helloRequest) speaks() wire.Version {
	if r.version == wire.RESP3.Number() {
		return wire.RESP3
	}
	return wire.RESP2
}

// parseHello returns the request, or the error with which Redis answers it.
func parseHello(args [][]byte) (request helloRequest, refusal string) {
	if len(args) > 1 {
		version, ok := resp.ParseDecimal(args[1])
		if !ok {
			return request, wire.ErrHelloVersion
		}
		if version < 2 || version > 3 {
			return request, wire.ErrHelloProtocol
		}
		request.version = int(version)
	}
	for i := 2; i < len(args); i++ {
		switch more := len(args) - 1 - i; {
		case more >= 2 && wire.IsWord(args[i], "AUTH"):
			request.login, request.user, request.password = true, args[i+1], args[i+2]
			i += 2
		case more >= 1 && wire.IsWord(args[i], "SETNAME"):
			request.named, request.name = true, args[i+1]
			if !isClientName(request.name) {
				return request, wire.ErrClientName
			}
			i++
		default:
			return request, wire.ErrHelloOption(args[i])
		}
	}
	return request, ""
}

// logsIn finds what must never reach an upstream as it came: it may know other
// users than the proxy and would take the connection for theirs.
func logsIn(name string, args [][]byte) bool {
	if name == "hello" {
		request, _ := parseHello(args)
		return request.login
	}
	return name == "auth"
}

// hello is always answered here. An open upstream is told the protocol and the
// name, never the password, and what it answers is kept from the client unless
// it refuses.
func (s *session) hello(args [][]byte) {
	request, refusal := parseHello(args)
	if refusal != "" {
		s.reply(refusal)
		return
	}
	if request.login {
		if answer := s.authenticate([][]byte{[]byte("AUTH"), request.user, request.password}); answer != wire.OK {
			s.reply(answer)
			return
		}
	}
	if s.account.Load() == nil {
		s.reply(s.stranger(wire.ErrHelloNoAuth))
		return
	}
	if request.named && !s.mayRemember(len(request.name), len(s.client.name)) {
		s.reply(wire.ErrMemory)
		return
	}
	if !s.tellUpstream(request) {
		if request.named {
			s.mayRemember(len(s.client.name), len(request.name))
		}
		return
	}
	if request.named {
		s.client.name = bytes.Clone(request.name)
	}
	if request.version != 0 {
		s.client.version = request.speaks()
	}
	l := s.listening.Load()
	if l == nil {
		s.replyBytes(s.helloReply())
		return
	}
	s.flushWith(func() {
		if !s.silent {
			s.pending = append(s.pending, s.helloReply()...)
		}
		l.Speak(s.client.version)
	})
}

// tellUpstream reports false when the client has been answered otherwise.
func (s *session) tellUpstream(request helloRequest) bool {
	up := s.upstream.Load()
	if up == nil || request.version == 0 {
		return true
	}
	if !request.named && request.speaks() == s.client.version {
		return true
	}
	hello := [][]byte{[]byte("HELLO"), strconv.AppendInt(nil, int64(request.version), 10)}
	if request.named {
		hello = append(hello, []byte("SETNAME"), request.name)
	}
	reply, ok := s.ask(resp.AppendCommand(nil, hello...))
	if !ok {
		return false
	}
	if resp.IsError(reply) {
		s.replyBytes(reply)
		return false
	}
	up.owed.speak(request.speaks())
	return true
}
