package handler

import (
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performScript performs SCRIPT LOAD, EXISTS, FLUSH and KILL on both planes, because only the keys of
// a later EVALSHA say on which plane a script runs. While no upstream can be reached, it performs them
// on the masters alone.
func (h *Handler) performScript(name string, cmd wire.Command, to route.Route) {
	if !h.Settle() || h.refusedAsRestricted(name, cmd.Args) {
		return
	}
	var reply []byte
	alone := h.TryOpen() != ""
	if alone {
		if refusal := refusesScript(name, cmd.Args, to.Spec); refusal != "" {
			h.ReplyError(refusal)
			return
		}
	} else {
		var ok bool
		if reply, ok = h.Ask(cmd.Raw); !ok || resp.IsError(reply) && name != "script|kill" {
			h.ReplyBytes(reply)
			return
		}
	}
	texts := h.service.Scripts
	switch name {
	case "script|load":
		if alone { // the masters check whether the script compiles
			reply = h.runOnLocks(h.lockCommand(cmd.Args, to))
		}
		if !resp.IsError(reply) {
			texts.Learn(name, cmd.Args)
		}
	case "script|exists":
		reply = texts.Exist(reply, cmd.Args[2:])
	case "script|flush":
		texts.Flush()
		if onMasters := h.runOnLocks(h.lockCommand(cmd.Args, to)); alone {
			reply = onMasters
		}
	case "script|kill":
		killed := false
		h.Busy(func() { killed = endpoint.KillScripts(h.Context(), h.Env.Active.Load().Masters) })
		switch {
		case killed:
			reply = []byte(wire.OK)
		case alone:
			h.ReplyError(wire.ErrScriptKill)
			return
		}
	}
	h.ReplyBytes(reply)
}

// refusesScript returns the error that an upstream would answer, or "".
func refusesScript(name string, args [][]byte, spec *route.Spec) wire.Error {
	if name == "script|flush" && (len(args) > 3 || len(args) == 3 && !wire.IsWord(args[2], "SYNC") && !wire.IsWord(args[2], "ASYNC")) {
		return wire.ErrScriptFlush
	}
	return spec.Check(args)
}
