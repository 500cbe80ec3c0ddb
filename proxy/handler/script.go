package handler

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performScript performs SCRIPT LOAD, EXISTS, FLUSH and KILL on both planes. Only the keys of
// a later EVALSHA say on which plane a script runs.
func (h *handler) performScript(name string, cmd wire.Command, to route.Route) {
	if !h.Settle() || h.refusedAsRestricted(name) {
		return
	}
	if h.TryOpen() != "" {
		h.performScriptHere(name, cmd, to)
		return
	}
	reply, ok := h.Ask(cmd.AsArray())
	if !ok {
		return
	}
	refused := resp.IsError(reply)
	switch {
	case name == "script|kill":
		if h.killOnMasters() {
			reply = []byte(wire.OK)
		}
	case refused:
	case name == "script|load":
		h.registerScript(name, cmd.Args)
	case name == "script|exists":
		reply = h.existsOnBoth(reply, cmd.Args[2:])
	case name == "script|flush":
		h.service.Scripts.Flush()
		h.runOnLocks(cmd.Args, to)
	}
	h.ReplyBytes(reply)
}

// performScriptHere is performScript while no upstream can be reached.
func (h *handler) performScriptHere(name string, cmd wire.Command, to route.Route) {
	if !to.Spec.ArityOK(len(cmd.Args)) {
		h.ReplyError(wire.ErrArity(name))
		return
	}
	switch name {
	case "script|load":
		// The masters check whether the script compiles.
		h.runOnLocks(cmd.Args, to)
		if h.lockReply[0] != '-' {
			h.registerScript(name, cmd.Args)
		}
		h.ReplyBytes(h.lockReply)
	case "script|exists":
		h.ReplyBytes(h.existsOnBoth(nil, cmd.Args[2:]))
	case "script|flush":
		if len(cmd.Args) > 3 || len(cmd.Args) == 3 && !wire.IsWord(cmd.Args[2], "SYNC") && !wire.IsWord(cmd.Args[2], "ASYNC") {
			h.ReplyError(wire.ErrScriptFlush)
			return
		}
		h.service.Scripts.Flush()
		h.runOnLocks(cmd.Args, to)
		h.ReplyBytes(h.lockReply)
	case "script|kill":
		if h.killOnMasters() {
			h.Reply(wire.OK)
			return
		}
		h.ReplyError(wire.ErrScriptKill)
	}
}

// existsOnBoth returns the reply to SCRIPT EXISTS: 1 for each script that both planes can
// run. fromUpstream is the upstream's reply, nil if there is no upstream.
func (h *handler) existsOnBoth(fromUpstream []byte, names [][]byte) []byte {
	upstream, _ := resp.Elements(fromUpstream)
	reply := redcon.AppendArray(nil, len(names))
	for i, sha := range names {
		_, known := h.service.Scripts.Get(sha)
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

// registerScript stores a script's text, so that every client can run it on lock keys with
// EVALSHA.
func (h *handler) registerScript(name string, args [][]byte) {
	switch {
	case (name == "eval" || name == "eval_ro") && len(args) > 1:
		h.service.Scripts.Register(args[1])
	case name == "script|load" && len(args) == 3:
		h.service.Scripts.Register(args[2])
	}
}

func (h *handler) killOnMasters() (killed bool) {
	kill := h.service.KillScripts
	if kill == nil {
		return false
	}
	h.Busy(func() { killed = kill(h.Context()) })
	return killed
}
