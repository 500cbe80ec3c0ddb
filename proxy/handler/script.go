package handler

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performScript performs SCRIPT LOAD, EXISTS, FLUSH and KILL on both planes, or on the masters
// alone while no upstream can be reached. Only the keys of a later EVALSHA say on which plane
// a script runs.
func (h *handler) performScript(name string, cmd wire.Command, to route.Route) {
	if !h.Settle() || h.refusedAsRestricted(name) {
		return
	}
	alone := h.TryOpen() != ""
	var reply []byte // the upstream's
	if !alone {
		var ok bool
		if reply, ok = h.Ask(cmd.AsArray()); !ok {
			return
		}
		if resp.IsError(reply) && name != "script|kill" {
			h.ReplyBytes(reply)
			return
		}
	} else if refusal := refusesScript(name, cmd.Args, to.Spec); refusal != "" {
		h.ReplyError(refusal)
		return
	}
	switch name {
	case "script|load":
		if alone { // the masters check whether the script compiles
			h.runOnLocks(cmd.Args, to)
			reply = h.lockReply
		}
		if !resp.IsError(reply) {
			h.registerScript(name, cmd.Args)
		}
	case "script|exists":
		reply = h.existsOnBoth(reply, cmd.Args[2:])
	case "script|flush":
		h.service.Scripts.Flush()
		h.runOnLocks(cmd.Args, to)
		if alone {
			reply = h.lockReply
		}
	case "script|kill":
		switch killed := h.killOnMasters(); {
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
func refusesScript(name string, args [][]byte, spec *command.Spec) wire.Error {
	if name == "script|flush" && (len(args) > 3 || len(args) == 3 && !wire.IsWord(args[2], "SYNC") && !wire.IsWord(args[2], "ASYNC")) {
		return wire.ErrScriptFlush
	}
	return spec.Check(args)
}

// existsOnBoth returns the reply to SCRIPT EXISTS: 1 for each script that both planes can
// run. fromUpstream is the upstream's reply, nil if there is no upstream.
func (h *handler) existsOnBoth(fromUpstream []byte, names [][]byte) []byte {
	upstream, _ := resp.Elements(fromUpstream)
	reply := redcon.AppendArray(nil, len(names))
	for i, sha := range names {
		exists := ":0\r\n"
		if _, known := h.service.Scripts.Get(sha); known && (i >= len(upstream) || string(upstream[i]) == ":1\r\n") {
			exists = ":1\r\n"
		}
		reply = append(reply, exists...)
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
	h.Busy(func() { killed = h.service.KillScripts(h.Context()) })
	return killed
}
