package proxy

import (
	"bytes"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// clientState is what a connection has told about itself. It lives here, so
// that the upstream can be opened late, closed by RESET, and be unreachable.
type clientState struct {
	version wire.Version
	db      int // the one that SELECT was granted last
	name    []byte
	info    []clientInfo
	noEvict bool
	noTouch bool
	bytes   int // what name and info take of the server's memory
}

// mayRemember takes memory for what a client says of itself, in the place of what
// it said before.
func (s *session) mayRemember(now, before int) bool {
	if !s.server.memory.Reserve(now - before) {
		s.server.cfg.metrics.LimitReached(string(config.LimitMemory))
		return false
	}
	s.client.bytes += now - before
	return true
}

// clientInfo is what CLIENT SETINFO said.
type clientInfo struct{ attribute, value string }

// beginAnew makes the client what it is after connecting and after RESET. It
// begins in the database that the upstream's URL names.
func (s *session) beginAnew() {
	settings := s.server.settings()
	s.server.memory.Release(s.client.bytes)
	s.client = clientState{db: settings.Upstream.DB}
	s.vouched = nil
	s.admit(settings.Users.First())
}

// replyMode is what CLIENT REPLY asked for.
type replyMode struct{ off, skip bool }

// next tells whether the reply to the command that comes now is unwanted.
func (m *replyMode) next() bool {
	silent := m.off || m.skip
	m.skip = false
	return silent
}

// refusal is the error that Redis would prefer to the given one: that it does
// not know the command, or not with so many arguments.
func (s *session) refusal(spec *command.Spec, args [][]byte, otherwise string) string {
	switch {
	case spec == nil:
		return wire.ErrUnknownCommand(args)
	case !spec.ArityOK(len(args)):
		return wire.ErrArity(spec.Name)
	}
	return otherwise
}

// performHandshake answers what the proxy itself answers: always what concerns
// protocol, login and replies, and the rest of a handshake while the upstream
// is closed. It reports false for every other command.
func (s *session) performHandshake(name string, cmd wire.Command, spec *command.Spec) bool {
	args := cmd.Args
	switch name {
	case "quit":
		s.reply(wire.OK)
		s.closing = true
		return true
	case "hello", "auth", "reset", "select", "client|reply":
	case "acl|whoami":
		if s.server.settings().Users.AtUpstream && s.upstream.Load() != nil {
			return false
		}
	case "ping", "echo", "client|setname", "client|setinfo", "client|getname", "client|no-evict", "client|no-touch":
		if s.upstream.Load() != nil {
			return false
		}
	default:
		if !asksForMaintenance(args) {
			return false
		}
		if s.settle() {
			s.replyUnlessRestricted("client", errorUnknownSubcommand(args))
		}
		return true
	}
	if !s.settle() {
		return true
	}
	if !spec.ArityOK(len(args)) {
		s.reply(wire.ErrArity(name))
		return true
	}
	if name == "reset" {
		s.reset()
		return true
	}
	if name != "ping" && s.refusedAsRestricted(name) {
		return true
	}
	switch name {
	case "hello":
		s.hello(args)
	case "auth":
		s.reply(s.authenticate(args))
	case "acl|whoami":
		s.replyBytes(redcon.AppendBulkString(nil, s.account.Load().Name))
	case "select":
		s.selectDatabase(cmd)
	case "client|reply":
		s.setReplyMode(args[2])
	case "ping":
		s.ping(args)
	case "echo":
		s.replyBytes(redcon.AppendBulk(nil, args[1]))
	default:
		s.replyBytes(s.describeClient(name, args))
	}
	return true
}

// asksForMaintenance recognises CLIENT MAINT_NOTIFICATIONS, which is never
// passed on: an upstream that knows it may later tell the client to connect
// elsewhere, past the proxy, and its locks would be one server's again.
func asksForMaintenance(args [][]byte) bool {
	return len(args) > 1 && wire.IsWord(args[0], "CLIENT") && wire.IsWord(args[1], "MAINT_NOTIFICATIONS")
}

func (s *session) ping(args [][]byte) {
	if len(args) <= 2 && s.restricted() {
		s.replyBytes(resp.AppendCommand(nil, []byte("pong"), bytes.Join(args[1:], nil)))
		return
	}
	switch len(args) {
	case 1:
		s.reply(wire.Pong)
	case 2:
		s.replyBytes(redcon.AppendBulk(nil, args[1]))
	default:
		s.reply(wire.ErrArity("ping"))
	}
}

// authenticate judges AUTH and returns its reply.
func (s *session) authenticate(args [][]byte) string {
	user, password := []byte(config.DefaultUser), args[len(args)-1]
	switch {
	case len(args) < 2:
		return wire.ErrArity("auth")
	case len(args) > 3:
		return wire.ErrSyntax
	case s.server.settings().Users.AtUpstream:
		return s.logInAtUpstream(args)
	case len(args) == 3:
		user = args[1]
	case s.server.settings().Users.First() != nil:
		return wire.ErrNoPassword
	}
	if !s.admits(user, password) {
		return wire.ErrWrongPass
	}
	return wire.OK
}

// admits makes the client the user whose name and password these are. It
// reports false, and leaves the client who it is, if they are nobody's.
func (s *session) admits(name, password []byte) bool {
	users := s.server.settings().Users
	user := users.Admit(name, password)
	if user == nil {
		s.server.refuseLogin(users.Known(name), s.sock.RemoteAddr())
		return false
	}
	s.admit(user)
	return true
}

// admit makes the client a user, or nobody.
func (s *session) admit(user *config.Account) {
	s.account.Store(user)
	s.guard.SetAuthenticated(user != nil)
	if user != nil {
		s.login.Store(loginDone)
	}
}

// What limits.login_time asks of a session. One that has been somebody's is not
// asked again, for RESET is not the end of a connection.
const (
	loginUnknown int32 = iota // nobody knows yet whether the client has to log in
	loginOwed
	loginDone
)

// oweLogin begins login_time for a client that is nobody yet.
func (s *session) oweLogin() {
	if s.account.Load() == nil {
		s.login.CompareAndSwap(loginUnknown, loginOwed)
	}
}

// selectDatabase lets an open upstream decide, since it knows how many
// databases it has.
func (s *session) selectDatabase(cmd wire.Command) {
	index, refusal := databaseIndex(cmd.Args[1])
	if s.upstream.Load() != nil {
		reply, ok := s.ask(asArray(cmd))
		if ok && reply[0] == '+' && refusal == "" {
			s.client.db = index
		}
		s.replyBytes(reply)
		return
	}
	if refusal == "" && (index < 0 || index >= s.server.databaseCount()) {
		refusal = wire.ErrDatabaseIndex
	}
	if refusal != "" {
		s.reply(refusal)
		return
	}
	s.client.db = index
	s.reply(wire.OK)
}

// databaseIndex reads SELECT's argument by Redis's rules for numbers.
func databaseIndex(arg []byte) (index int, refusal string) {
	number, ok := resp.ParseDecimal(arg)
	switch {
	case !ok:
		return 0, wire.ErrNotInteger
	case number < -1<<31 || number > 1<<31-1:
		return 0, wire.ErrIntegerRange
	}
	return int(number), ""
}

// setReplyMode is CLIENT REPLY, which is never forwarded: the proxy must read
// the upstream's replies to know where they end, and drops them itself.
func (s *session) setReplyMode(mode []byte) {
	switch {
	case wire.IsWord(mode, "ON"):
		s.replies = replyMode{}
		s.silent = false
		s.reply(wire.OK)
	case wire.IsWord(mode, "OFF"):
		s.replies.off = true
	case wire.IsWord(mode, "SKIP"):
		s.replies.skip = !s.replies.off
	default:
		s.reply(wire.ErrSyntax)
	}
}

// describeClient answers the CLIENT subcommands that need no server.
func (s *session) describeClient(name string, args [][]byte) []byte {
	switch name {
	case "client|setname":
		if !isClientName(args[2]) {
			return []byte(wire.ErrClientName)
		}
		if !s.mayRemember(len(args[2]), len(s.client.name)) {
			return []byte(wire.ErrMemory)
		}
		s.client.name = bytes.Clone(args[2])
	case "client|getname":
		if len(s.client.name) == 0 {
			return wire.AppendNull(nil, s.client.version)
		}
		return redcon.AppendBulk(nil, s.client.name)
	case "client|setinfo":
		return s.setInfo(args[2], args[3])
	case "client|no-evict", "client|no-touch":
		on := wire.IsWord(args[2], "ON")
		if !on && !wire.IsWord(args[2], "OFF") {
			return []byte(wire.ErrSyntax)
		}
		if name == "client|no-evict" {
			s.client.noEvict = on
		} else {
			s.client.noTouch = on
		}
	}
	return []byte(wire.OK)
}

func (s *session) setInfo(attribute, value []byte) []byte {
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
	if !isClientName(value) {
		return []byte("-ERR " + known + " cannot contain spaces, newlines or special characters.\r\n")
	}
	info := clientInfo{attribute: known, value: string(value)}
	for i := range s.client.info {
		if s.client.info[i].attribute == known {
			if !s.mayRemember(len(value), len(s.client.info[i].value)) {
				return []byte(wire.ErrMemory)
			}
			s.client.info[i] = info
			return []byte(wire.OK)
		}
	}
	if !s.mayRemember(len(value), 0) {
		return []byte(wire.ErrMemory)
	}
	s.client.info = append(s.client.info, info)
	return []byte(wire.OK)
}

// longestClientName keeps what is remembered of idle clients small.
const longestClientName = 64 << 10

// isClientName keeps CLIENT LIST, which separates by spaces, readable.
func isClientName(name []byte) bool {
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

// reset makes the connection new, the upstream's side of it too: that one is
// closed, and opened when a command needs it. Nothing is owed, or the
// connection is a pipe, of which all that the upstream still says is delivered.
func (s *session) reset() {
	s.send()
	if up := s.upstream.Load(); up != nil {
		s.watch.begin()
		whole := up.finish()
		s.watch.end()
		if !whole {
			s.closing = true
			return
		}
		s.upstream.Store(nil)
	}
	s.stopListening()
	s.tracking = tracking{}
	s.beginAnew()
	s.replies, s.silent = replyMode{}, false
	s.monitoring = false
	s.endTransaction()
	s.lastRead = lastRead{}
	s.reply(wire.Reset)
}
