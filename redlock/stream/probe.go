package stream

import (
	_ "embed"
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
)

// A master may refuse what locks need: its memory is full, it wants replicas, it cannot save, or
// its user lacks a right. Then it takes no locks, or could not give them back. The stream finds out
// without any lock: now and then it tries every command that locks need on a key that does not
// exist, in a way that writes nothing.

// ProbeScript is for stand-ins of a server.
//
//go:embed probe.lua
var ProbeScript string

const probeKey = "redlock-proxy:probe"

// WriteProbe is a command that a master refuses if it refuses to take locks. It writes nothing,
// because its key does not exist.
var WriteProbe = []string{"SET", probeKey, "", "XX", "PX", "1000"}

const probeReplies = 6

// probeQuestion returns the commands of a probe. WriteProbe is first: the servers refuse a write
// for the most reasons, and before Redis 7 not all of them within a script.
func probeQuestion(marker string) []byte {
	return resp.AppendEval(slices.Concat(
		resp.AppendCommand(nil, WriteProbe...),
		resp.AppendCommand(nil, "WATCH", probeKey),
		resp.AppendCommand(nil, "UNWATCH"),
		resp.AppendCommand(nil, "MULTI"),
		resp.AppendCommand(nil, "EXEC"),
	), ProbeScript, [][]byte{[]byte(probeKey), []byte(marker)})
}

// probe sends a probe, with s.mu held, unless one is unanswered.
func (s *Stream) probe(now time.Time) {
	if s.probing || s.embedded || !s.accepts() {
		return
	}
	s.probing, s.probed = true, now
	s.push(Call{Replies: probeReplies, Asker: AskerFunc(s.heardProbe)}, probeQuestion(s.marker), now)
}

// heardProbe handles the answers to a probe.
func (s *Stream) heardProbe(replies [][]byte, _ Judgement, err error) {
	if err != nil {
		return // the next connection starts without a probe
	}
	var refusal []byte
	if at := slices.IndexFunc(replies, resp.IsError); at >= 0 {
		refusal = replies[at]
	}
	s.mu.Lock()
	s.probing = false
	// A master that is full or wants replicas is still asked. It may give back what it has, and
	// refuses a new lock itself.
	s.refuses = refusal != nil && (resp.IsForbidden(refusal) || !resp.CannotServe(refusal))
	s.mu.Unlock()
	s.owner.Refuses(refusal)
}
