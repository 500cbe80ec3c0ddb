package handler

import (
	"bytes"
	"log/slog"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// clientState is what a client has set for its connection. The proxy keeps it, so that the
// upstream connection can be opened late, be closed by RESET, and be unreachable.
type clientState struct {
	version wire.Version
	db      int // the database of the last successful SELECT
	name    []byte
	info    []clientInfo
	noEvict bool
	noTouch bool
	bytes   int // the memory that name and info take from the budget
}

// commands returns the commands that set the same state on a new upstream connection.
func (c *clientState) commands() (list [][]string) {
	if len(c.name) > 0 {
		list = append(list, []string{"CLIENT", "SETNAME", string(c.name)})
	}
	for _, info := range c.info {
		list = append(list, []string{"CLIENT", "SETINFO", info.attribute, info.value})
	}
	if c.noEvict {
		list = append(list, []string{"CLIENT", "NO-EVICT", "on"})
	}
	if c.noTouch {
		list = append(list, []string{"CLIENT", "NO-TOUCH", "on"})
	}
	return list
}

// mayRemember takes memory for a client's name or info of now bytes, in place of an old one
// of before bytes. It returns false if the budget has no room.
func (h *handler) mayRemember(now, before int) bool {
	if !h.Env.Budget.Reserve(now - before) {
		h.Env.Metrics.LimitReached(string(config.LimitMemory))
		return false
	}
	h.client.bytes += now - before
	return true
}

// clientInfo is one attribute that CLIENT SETINFO has set.
type clientInfo struct{ attribute, value string }

// LogValue describes the client for the log.
func (h *handler) LogValue() slog.Value {
	return slog.GroupValue(slog.String("address", h.RemoteAddr().String()), slog.String("name", string(h.client.name)))
}

// beginAnew sets the client's state after connecting and after RESET. The first database is
// the one in the upstream's URL.
func (h *handler) beginAnew() {
	settings := h.Env.Active.Load()
	h.Env.Budget.Release(h.client.bytes)
	h.client = clientState{db: settings.Upstream.DB}
	h.vouched = nil
	h.admit(settings.Users.First())
}

// replyMode is the state that CLIENT REPLY has set.
type replyMode struct{ off, skip bool }

// next reports whether the client does not want the reply to the next command. It uses up a
// SKIP.
func (m *replyMode) next() bool {
	silent := m.off || m.skip
	m.skip = false
	return silent
}

// refusal returns the error for a refused command. An unknown command or a wrong number of
// arguments is the more important error, as in Redis. Else refusal returns otherwise.
func (h *handler) refusal(spec *command.Spec, args [][]byte, otherwise wire.Error) wire.Error {
	switch {
	case spec == nil:
		return wire.ErrUnknownCommand(args)
	case !spec.ArityOK(len(args)):
		return wire.ErrArity(spec.Name)
	}
	return otherwise
}

// performHandshake answers the commands that the proxy itself answers. It always answers
// those about protocol, login and replies. It answers the rest of a handshake only while
// the upstream connection is closed. It returns false for every other command.
func (h *handler) performHandshake(name string, cmd wire.Command, spec *command.Spec) bool {
	args := cmd.Args
	switch name {
	case "quit":
		h.Reply(wire.OK)
		h.End(session.Quit)
		return true
	case "hello", "auth", "reset", "select", "client|reply":
	case "acl|whoami":
		if h.Env.Active.Load().Users.AtUpstream && h.Upstream() != nil {
			return false
		}
	case "ping", "echo", "client|setname", "client|setinfo", "client|getname", "client|no-evict", "client|no-touch":
		if h.Upstream() != nil {
			return false
		}
	default:
		if !command.AsksForMaintenance(args) {
			return false
		}
		if h.Settle() {
			h.replyUnlessRestricted("client", wire.ErrUnknownSubcommand(args))
		}
		return true
	}
	if !h.Settle() {
		return true
	}
	if !spec.ArityOK(len(args)) {
		h.ReplyError(wire.ErrArity(name))
		return true
	}
	if name == "reset" {
		h.reset()
		return true
	}
	if name != "ping" && h.refusedAsRestricted(name) {
		return true
	}
	switch name {
	case "hello":
		h.hello(args)
	case "auth":
		h.Reply(h.authenticate(args))
	case "acl|whoami":
		h.ReplyBytes(redcon.AppendBulkString(nil, h.account.Load().Name))
	case "select":
		h.selectDatabase(cmd)
	case "client|reply":
		h.setReplyMode(args[2])
	case "ping":
		h.ping(args)
	case "echo":
		h.ReplyBytes(redcon.AppendBulk(nil, args[1]))
	default:
		h.ReplyBytes(h.describeClient(name, args))
	}
	return true
}

func (h *handler) ping(args [][]byte) {
	if len(args) <= 2 && h.hearing.Restricted() {
		h.ReplyBytes(resp.AppendCommand(nil, []byte("pong"), bytes.Join(args[1:], nil)))
		return
	}
	switch len(args) {
	case 1:
		h.Reply(wire.Pong)
	case 2:
		h.ReplyBytes(redcon.AppendBulk(nil, args[1]))
	default:
		h.ReplyError(wire.ErrArity("ping"))
	}
}

// authenticate checks AUTH and returns its reply.
func (h *handler) authenticate(args [][]byte) string {
	user, password := []byte(config.DefaultUser), args[len(args)-1]
	switch {
	case len(args) < 2:
		return string(wire.ErrArity("auth"))
	case len(args) > 3:
		return string(wire.ErrSyntax)
	case h.Env.Active.Load().Users.AtUpstream:
		return h.logInAtUpstream(args)
	case len(args) == 3:
		user = args[1]
	case h.Env.Active.Load().Users.First() != nil:
		return string(wire.ErrNoPassword)
	}
	if !h.admits(user, password) {
		return string(wire.ErrWrongPass)
	}
	return wire.OK
}

// admits logs the client in with a name and a password. If they are wrong, it returns false
// and the client's user stays the same.
func (h *handler) admits(name, password []byte) bool {
	users := h.Env.Active.Load().Users
	user := users.Admit(name, password)
	if user == nil {
		h.service.refuseLogin(users.Known(name), h.RemoteAddr())
		return false
	}
	h.admit(user)
	return true
}

// admit sets the client's user. nil means that the client is not logged in.
func (h *handler) admit(user *config.Account) {
	h.account.Store(user)
	h.SetAuthenticated(user != nil)
	if user != nil {
		h.login.Store(loginDone)
	}
}

// These values say whether limits.login_time applies to a session. After the first login it
// never applies again, because RESET does not end a connection.
const (
	loginUnknown int32 = iota // it is not known yet whether the client must log in
	loginOwed                 // the client must log in
	loginDone
)

// oweLogin begins login_time for a client that is not logged in.
func (h *handler) oweLogin() {
	if h.account.Load() == nil {
		h.login.CompareAndSwap(loginUnknown, loginOwed)
	}
}

// selectDatabase performs SELECT. An open upstream decides, because it knows the number of
// its databases.
func (h *handler) selectDatabase(cmd wire.Command) {
	index, refusal := wire.ParseDatabase(cmd.Args[1])
	if h.Upstream() != nil {
		reply, ok := h.Ask(cmd.AsArray())
		if ok && reply[0] == '+' && refusal == "" {
			h.client.db = index
		}
		h.ReplyBytes(reply)
		return
	}
	if refusal == "" && (index < 0 || index >= h.service.databaseCount()) {
		refusal = wire.ErrDatabaseIndex
	}
	if refusal != "" {
		h.ReplyError(refusal)
		return
	}
	h.client.db = index
	h.Reply(wire.OK)
}

// setReplyMode performs CLIENT REPLY. The proxy never forwards it, because it needs the
// upstream's replies to match them with commands. It drops them itself.
func (h *handler) setReplyMode(mode []byte) {
	switch {
	case wire.IsWord(mode, "ON"):
		h.replies = replyMode{}
		h.Mute(false)
		h.Reply(wire.OK)
	case wire.IsWord(mode, "OFF"):
		h.replies.off = true
	case wire.IsWord(mode, "SKIP"):
		h.replies.skip = !h.replies.off
	default:
		h.ReplyError(wire.ErrSyntax)
	}
}

// describeClient returns the reply to a CLIENT subcommand that needs no server.
func (h *handler) describeClient(name string, args [][]byte) []byte {
	switch name {
	case "client|setname":
		if !wire.IsClientName(args[2]) {
			return []byte(wire.ErrClientName)
		}
		if !h.mayRemember(len(args[2]), len(h.client.name)) {
			return []byte(wire.ErrMemory)
		}
		h.client.name = bytes.Clone(args[2])
	case "client|getname":
		if len(h.client.name) == 0 {
			return wire.AppendNull(nil, h.client.version)
		}
		return redcon.AppendBulk(nil, h.client.name)
	case "client|setinfo":
		return h.setInfo(args[2], args[3])
	case "client|no-evict", "client|no-touch":
		on := wire.IsWord(args[2], "ON")
		if !on && !wire.IsWord(args[2], "OFF") {
			return []byte(wire.ErrSyntax)
		}
		if name == "client|no-evict" {
			h.client.noEvict = on
		} else {
			h.client.noTouch = on
		}
	}
	return []byte(wire.OK)
}

func (h *handler) setInfo(attribute, value []byte) []byte {
	known := ""
	switch {
	case wire.IsWord(attribute, "LIB-NAME"):
		known = "lib-name"
	case wire.IsWord(attribute, "LIB-VER"):
		known = "lib-ver"
	}
	if known == "" {
		return []byte("-ERR Unrecognized option '" + wire.OneLine(attribute) + "'\r\n")
	}
	if !wire.IsClientName(value) {
		return []byte("-ERR " + known + " cannot contain spaces, newlines or special characters.\r\n")
	}
	info := clientInfo{attribute: known, value: string(value)}
	for i := range h.client.info {
		if h.client.info[i].attribute == known {
			if !h.mayRemember(len(value), len(h.client.info[i].value)) {
				return []byte(wire.ErrMemory)
			}
			h.client.info[i] = info
			return []byte(wire.OK)
		}
	}
	if !h.mayRemember(len(value), 0) {
		return []byte(wire.ErrMemory)
	}
	h.client.info = append(h.client.info, info)
	return []byte(wire.OK)
}

// reset performs RESET. It also closes the upstream connection; the next command that needs
// one opens it again. The caller has waited for all pending replies. In a pipe, everything
// that the upstream still sends is delivered first.
func (h *handler) reset() {
	if !h.CloseUpstream() {
		return
	}
	h.hearing.Reset()
	h.beginAnew()
	h.replies = replyMode{}
	h.Mute(false)
	h.monitoring = false
	h.endTransaction()
	h.lastRead = lock.LastReads{}
	h.Reply(wire.Reset)
	h.Arrived()
}
