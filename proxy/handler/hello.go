package handler

import (
	"bytes"
	"strconv"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// helloReply describes the proxy as one ordinary Redis.
func (h *handler) helloReply() []byte {
	reply := wire.AppendMapHeader(nil, 7, h.client.version)
	reply = redcon.AppendBulkString(reply, "server")
	reply = redcon.AppendBulkString(reply, "redis")
	reply = redcon.AppendBulkString(reply, "version")
	reply = redcon.AppendBulkString(reply, h.service.shownVersion())
	reply = redcon.AppendBulkString(reply, "proto")
	reply = redcon.AppendInt(reply, int64(h.client.version.Number()))
	reply = redcon.AppendBulkString(reply, "id")
	reply = redcon.AppendInt(reply, h.ID())
	reply = redcon.AppendBulkString(reply, "mode")
	reply = redcon.AppendBulkString(reply, "standalone")
	reply = redcon.AppendBulkString(reply, "role")
	reply = redcon.AppendBulkString(reply, "master")
	reply = redcon.AppendBulkString(reply, "modules")
	return redcon.AppendArray(reply, 0)
}

// helloRequest holds the parsed arguments of HELLO.
type helloRequest struct {
	version  int // 0: the client keeps its version
	user     []byte
	password []byte
	login    bool
	name     []byte
	named    bool
}

// speaks returns the requested version. The request must name one.
func (r helloRequest) speaks() wire.Version {
	if r.version == wire.RESP3.Number() {
		return wire.RESP3
	}
	return wire.RESP2
}

// parseHello returns the request, or the error that Redis would answer.
func parseHello(args [][]byte) (request helloRequest, refusal wire.Error) {
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

// logsIn reports whether a command logs a client in. Such a command must never be forwarded
// as it came. The upstream may have other users than the proxy, and would then give the
// connection to the wrong user.
func logsIn(name string, args [][]byte) bool {
	if name == "hello" {
		request, _ := parseHello(args)
		return request.login
	}
	return name == "auth"
}

// hello performs HELLO. The proxy always answers it. An open upstream gets the protocol and
// the name, never the password. The client sees the upstream's reply only if it is an error.
func (h *handler) hello(args [][]byte) {
	request, refusal := parseHello(args)
	if refusal != "" {
		h.ReplyError(refusal)
		return
	}
	if request.login {
		if answer := h.authenticate([][]byte{[]byte("AUTH"), request.user, request.password}); answer != wire.OK {
			h.Reply(answer)
			return
		}
	}
	if h.account.Load() == nil {
		h.ReplyError(h.unauthenticated(wire.ErrHelloNoAuth))
		return
	}
	if request.named && !h.mayRemember(len(request.name), len(h.client.name)) {
		h.ReplyError(wire.ErrMemory)
		return
	}
	if !h.tellUpstream(request) {
		if request.named {
			h.mayRemember(len(h.client.name), len(request.name))
		}
		return
	}
	if request.named {
		h.client.name = bytes.Clone(request.name)
	}
	if request.version != 0 {
		h.client.version = request.speaks()
	}
	if !h.hearing.Listens() {
		h.ReplyBytes(h.helloReply())
		return
	}
	h.FlushWith(func(replies []byte) []byte {
		if !h.Muted() {
			replies = append(replies, h.helloReply()...)
		}
		h.hearing.Speak(h.client.version)
		return replies
	})
}

// tellUpstream sends an open upstream the new protocol and name. It returns false if the
// client has already got an error.
func (h *handler) tellUpstream(request helloRequest) bool {
	if h.Upstream() == nil || request.version == 0 {
		return true
	}
	if !request.named && request.speaks() == h.client.version {
		return true
	}
	hello := [][]byte{[]byte("HELLO"), strconv.AppendInt(nil, int64(request.version), 10)}
	if request.named {
		hello = append(hello, []byte("SETNAME"), request.name)
	}
	reply, ok := h.AskFor(upstream.Expectation{Kind: upstream.Switch, Version: request.speaks(), Count: 1}, resp.AppendCommand(nil, hello...), nil)
	if !ok {
		return false
	}
	if resp.IsError(reply) {
		h.ReplyBytes(reply)
		return false
	}
	return true
}
