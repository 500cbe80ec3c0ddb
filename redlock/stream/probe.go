package stream

import (
	_ "embed"
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
)

// If a master refuses one of our commands, it may also refuse those of a release or an
// undo. So the stream tries all of them on a key of ours. Until that succeeds it asks the
// master for no locks, because the master could not give them back.

//go:embed probe.lua
var probeText string

var (
	probeKey = []byte("redlock-proxy:probe")

	probeQuestion = resp.AppendEval(slices.Concat(
		resp.AppendCommand(nil, "WATCH", string(probeKey)),
		resp.AppendCommand(nil, "UNWATCH"),
		resp.AppendCommand(nil, "MULTI"),
		resp.AppendCommand(nil, "EXEC"),
	), probeText, [][]byte{probeKey})
)

const probeReplies = 5

// Doubt probes a master that has refused a command. It does not probe a master that
// cannot serve for a while, such as one that loads its data: that master would refuse the
// probe too. A beat repeats a probe that was refused.
func (s *Stream) Doubt(refusal []byte) {
	if s.embedded || resp.CannotServe(refusal) && !resp.IsForbidden(refusal) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.refuses {
		s.probe(time.Now())
	}
}

// probe sends a probe, with s.mu held, unless one is unanswered.
func (s *Stream) probe(now time.Time) {
	if s.probing || !s.accepts() {
		return
	}
	s.probing = true
	s.push(Call{Replies: probeReplies, Asker: AskerFunc(s.probed)}, probeQuestion, now)
}

// probed handles the answers to a probe.
func (s *Stream) probed(replies [][]byte, _ Judgement, err error) {
	if err != nil {
		return // the next connection starts without a probe
	}
	refused := slices.IndexFunc(replies, resp.IsError)
	s.mu.Lock()
	before := s.refuses
	s.refuses, s.probing = refused >= 0, false
	s.mu.Unlock()
	switch {
	case refused < 0 && before:
		s.log.Info("a lock master accepts the commands of locks again", "master", s.owner.Name(), "db", s.db)
	case refused >= 0 && !before:
		s.log.Error("a lock master refuses commands that locks need, so it is asked for no locks; grant these commands to the proxy's user",
			"master", s.owner.Name(), "db", s.db, "error", resp.ErrorText(replies[refused]))
	}
}
