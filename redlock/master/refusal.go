package master

import (
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
)

// A master that refuses what locks need is connected, remembers everything and answers what it can:
// reads, and often releases and renewals. So its answers count. But it takes no lock, so it is no
// master that votes, to everybody who asks for its state. It has forgotten nothing, and votes again
// as soon as it refuses nothing.

// remedies say what is wrong with a master that refuses with a code of Redis's, and what to do.
var remedies = map[string]string{
	"OOM":        "it refuses locks, because its memory is full (OOM); raise its maxmemory",
	"NOREPLICAS": "it refuses locks, because it wants replicas (NOREPLICAS); set its min-replicas-to-write to 0",
	"MISCONF":    "it refuses locks, because it cannot save its data (MISCONF); its own log says why",
	"READONLY":   "it refuses locks, because it is read-only (READONLY), as a replica is",
	"MASTERDOWN": "it refuses all commands, because it is a replica (MASTERDOWN)",
	"LOADING":    "it refuses all commands, because it loads its data (LOADING)",
	"BUSY":       "it refuses all commands, because a script runs there for too long (BUSY); SCRIPT KILL ends it",
	"NOAUTH":     "it refuses all commands, because it wants a password (NOAUTH)",
}

// Refusal says for people why a master refuses a command that locks need. reply is the error with
// which it refuses a command of ours, so it has no client's words in it.
func Refusal(reply []byte) string {
	if remedy := remedies[string(resp.InnerCode(reply))]; remedy != "" {
		return remedy
	}
	if resp.IsForbidden(reply) {
		return "it denies the proxy's user a command that locks need; grant it (the server says: " + oneLine(resp.ErrorText(reply), maxCause) + ")"
	}
	return "it refuses a command that locks need (the server says: " + oneLine(resp.ErrorText(reply), maxCause) + ")"
}

// Refuses takes over the result of a probe.
func (s *database) Refuses(reply []byte) {
	s.checked.refusal = ""
	if reply != nil {
		s.checked.refusal = Refusal(reply)
	}
	if s.checked.judged.State != roster.Unreachable {
		s.show()
	}
}

// show notes the state of a place as the last check judged it, or that the master refuses what locks
// need. A master that must not vote, or not yet, for another reason has that reason.
func (s *database) show() {
	st := s.checked.judged
	if s.checked.refusal != "" && (st.State == roster.Voting || st.State == roster.Starting) {
		st.State, st.Reason, st.Until = roster.Rejected, s.checked.refusal, time.Time{}
	}
	s.note(st)
}
