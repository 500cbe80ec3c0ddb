package proxy

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performScript answers SCRIPT LOAD, EXISTS, FLUSH and KILL for both planes:
// which one a script will run on is not known before its keys are.
func (s *session) performScript(name string, cmd wire.Command, to route.Route) {
	if !s.settle() || s.refusedAsRestricted(name) {
		return
	}
	if s.tryOpen() != "" {
		s.performScriptHere(name, cmd, to)
		return
	}
	reply, ok := s.ask(asArray(cmd))
	if !ok {
		return
	}
	refused := resp.IsError(reply)
	switch {
	case name == "script|kill":
		if s.killOnMasters() {
			reply = []byte(wire.OK)
		}
	case refused:
	case name == "script|load":
		s.registerScript(name, cmd.Args)
	case name == "script|exists":
		reply = s.existsOnBoth(reply, cmd.Args[2:])
	case name == "script|flush":
		s.server.cfg.scripts.flush()
		s.runOnLocks(cmd.Args, to)
	}
	s.replyBytes(reply)
}

// performScriptHere is performScript without an upstream.
func (s *session) performScriptHere(name string, cmd wire.Command, to route.Route) {
	if !to.Spec.ArityOK(len(cmd.Args)) {
		s.reply(wire.ErrArity(name))
		return
	}
	switch name {
	case "script|load":
		// The masters say whether it compiles.
		s.runOnLocks(cmd.Args, to)
		if s.lockReply[0] != '-' {
			s.registerScript(name, cmd.Args)
		}
		s.replyBytes(s.lockReply)
	case "script|exists":
		s.replyBytes(s.existsOnBoth(nil, cmd.Args[2:]))
	case "script|flush":
		if len(cmd.Args) > 3 || len(cmd.Args) == 3 && !wire.IsWord(cmd.Args[2], "SYNC") && !wire.IsWord(cmd.Args[2], "ASYNC") {
			s.reply(wire.ErrScriptFlush)
			return
		}
		s.server.cfg.scripts.flush()
		s.runOnLocks(cmd.Args, to)
		s.replyBytes(s.lockReply)
	case "script|kill":
		if s.killOnMasters() {
			s.reply(wire.OK)
			return
		}
		s.reply(wire.ErrScriptKill)
	}
}

// existsOnBoth answers 1 for a script that both planes can run; fromUpstream
// is nil where there is no upstream.
func (s *session) existsOnBoth(fromUpstream []byte, names [][]byte) []byte {
	upstream, _ := resp.Elements(fromUpstream)
	reply := redcon.AppendArray(nil, len(names))
	for i, sha := range names {
		_, known := s.server.cfg.scripts.get(sha)
		if i < len(upstream) && string(upstream[i]) != ":1\r\n" {
			known = false
		}
		if known {
			reply = redcon.AppendInt(reply, 1)
		} else {
			reply = redcon.AppendInt(reply, 0)
		}
	}
	return reply
}

// registerScript makes a text known to every client's EVALSHA on lock keys.
func (s *session) registerScript(name string, args [][]byte) {
	switch {
	case (name == "eval" || name == "eval_ro") && len(args) > 1:
		s.server.cfg.scripts.register(args[1])
	case name == "script|load" && len(args) == 3:
		s.server.cfg.scripts.register(args[2])
	}
}

func (s *session) killOnMasters() bool {
	kill := s.server.cfg.killScripts
	if kill == nil {
		return false
	}
	s.watch.begin()
	defer s.watch.end()
	return kill(s.ctx)
}
