package handler

import (
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/scripts"
	"redlock-proxy/proxy/wire"
)

// performScript performs SCRIPT LOAD, EXISTS, FLUSH and KILL on both planes. Only the keys of a
// later EVALSHA say on which plane a script runs.
func (h *handler) performScript(name string, cmd wire.Command, to route.Route) {
	if !h.Settle() || h.refusedAsRestricted(name, cmd.Args) {
		return
	}
	reply, refusal := h.service.Scripts.Perform(scripting{h, to}, name, cmd, to.Spec)
	h.ReplyError(refusal)
	h.ReplyBytes(reply)
}

// scripting is the handler as package scripts sees it.
type scripting struct {
	*handler
	to route.Route
}

func (s scripting) RunOnMasters(args [][]byte) (reply []byte) {
	s.runOnLocks(args, s.to)
	return s.lockReply
}

func (s scripting) KillOnMasters() (killed bool) {
	s.Busy(func() { killed = scripts.Kill(s.Context(), s.Env.Active.Load().Masters) })
	return killed
}
