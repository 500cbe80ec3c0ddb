package stream

import (
	_ "embed"
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
)

// A master that refuses one of our own commands may refuse what a release or an
// undo needs, too. So all of them are tried on a key of ours, and until that
// succeeds the master is not asked for locks: it could not give them back.

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

const (
	probeReplies = 5
	// probePause is how long after a probe that was refused comes the next.
	probePause = time.Second
)

// Doubt has the master probed that has refused something. What it cannot serve
// for a while, as while it loads, it will say of the probe, too.
func (s *Stream) Doubt(refusal []byte) {
	if s.embedded || resp.CannotServe(refusal) && !resp.IsForbidden(refusal) {
		return
	}
	s.probe()
}

func (s *Stream) probe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probing || !s.accepts() {
		return
	}
	s.probing = true
	s.push(Call{Replies: probeReplies, Asker: AskerFunc(s.probed)}, probeQuestion, time.Now())
}

func (s *Stream) probeAgain() {
	s.mu.Lock()
	s.probing = false
	s.mu.Unlock()
	s.probe()
}

// probed hears what the master makes of the probe.
func (s *Stream) probed(replies [][]byte, _ Judgement, err error) {
	if err != nil {
		return // the next connection begins anew
	}
	refused := slices.IndexFunc(replies, resp.IsError)
	s.mu.Lock()
	before := s.refuses
	s.refuses, s.probing = refused >= 0, refused >= 0
	s.mu.Unlock()
	switch {
	case refused < 0 && before:
		s.log.Info("a lock master does again what locks need", "master", s.owner.Name(), "db", s.db)
	case refused >= 0:
		time.AfterFunc(probePause, s.probeAgain)
		if !before {
			s.log.Error("a lock master refuses what locks need, so it is not asked for any; grant the proxy's user all rights that it needs",
				"master", s.owner.Name(), "db", s.db, "error", resp.ErrorText(replies[refused]))
		}
	}
}
