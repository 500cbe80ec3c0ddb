package master

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// checked is the result of a stream's last check. The next check mostly finds the same,
// and is then cheap.
type checked struct {
	valid    bool
	text     string
	version  uint64 // version of the roster that judged it
	standing roster.Standing
	marker   marker.Marker
	noted    roster.Standing // the standing that the roster was told last
	judged   roster.Standing // by the last check; the zero value if it was not answered
	refusal  string          // why the master refused the last probe; empty if it did not
}

// Judge reads a check and decides whether the votes of its batch count.
func (s *database) Judge(c stream.Check) stream.Judgement {
	m, last, p := s.master, &s.checked, s.place()
	sent, received := moment{c.Sent, c.Slept}, c.Received
	if c.Info != nil {
		now := readReplication(c.Info)
		m.voters.step(roster.Replicates{Place: p, Replication: now}, received)
	}
	text, isText := resp.ParseBulk(c.Marker)
	server, ok := resp.ParseTime(c.Time)
	if resp.CannotServe(c.Marker) || !ok || !c.Fits {
		reason := "it answers that it cannot serve now"
		if resp.CannotServe(c.Marker) {
			reason = Refusal(c.Marker)
		}
		last.judged = roster.Standing{}
		s.note(roster.Standing{State: roster.Starting, Reason: reason})
		return stream.Judgement{}
	}
	limits := m.limits.Load()
	if received.Round(0).Sub(sent.at.Round(0))-received.Sub(sent.at) >= slumberStep {
		m.slumber.look() // the wall clock went on while the monotonic clock stood still
	}
	jump, slept := m.clock.observe(sent, received, server, limits.ClockDrift, m.slumber)
	switch {
	case jump.Forward():
		m.log.Warn("the clock of a lock master has jumped forward, so locks on it ended early (deploy/INCIDENTS.md#redlockclockjumped)", "master", m.Name(), "by", jump.Least.String())
	case jump.Backward():
		m.log.Warn("the clock of a lock master has jumped backward, so locks on it last longer (deploy/INCIDENTS.md#redlockclockjumped)", "master", m.Name(), "by", (-jump.Most).String())
	}
	rest, token := marker.CutToken(text)
	if s.hung.Swap(false) {
		last.noted = roster.Standing{}
	}
	version := m.voters.version.Load()
	anew := !last.valid || last.version != version || last.text != string(rest) || jump.Forward()
	if anew {
		broken := !isText && !resp.IsNil(c.Marker)
		m.voters.do(func(r *roster.Roster) {
			r.Step(roster.Checked{Place: p, Text: string(text), Broken: broken, Asked: sent.at, Jump: jump}, received)
			last.standing, last.marker = r.Judge(p)
		})
		last.valid, last.version, last.text = true, version, string(rest)
	}
	// rule: a step of the wall clock is no time that has passed
	s.latest.store(reading{sent.at, token}) // the roster knows this answer by now
	st := last.standing.At(last.marker, roster.Reading{
		Clock: server, Received: received,
		Unsure: c.Unsure, Suspended: slept, Jumped: jump.Forward(),
		Watched: m.clock.watchedFor(received), Witnessed: m.voters.witnessed.Load(),
	}, limits.Limits)
	last.judged = st
	s.show()
	return stream.Judgement{Votes: st.State == roster.Voting, Masters: st.Masters, Covers: st.Covers, Longest: last.marker.Longest, Anew: anew}
}

// note tells the roster the state of a place, if it has changed.
func (s *database) note(st roster.Standing) {
	noted := &s.checked.noted
	moved := st.Until.Sub(noted.Until).Abs() > time.Second // the master's clock was set back
	if noted.State != st.State || noted.Reason != st.Reason || noted.Longest != st.Longest || moved {
		*noted = st
		s.master.tell(s.db, st, time.Now())
	}
}

// A server can replace its memory without a restart. If it becomes a replica, it loads
// another server's copy, with the marker in it. Then it may become a master again. So
// every batch asks the server for its replication (stream/check.go), and the marker
// records its replication id.

// readReplication reads the answer to INFO replication.
func readReplication(info []byte) roster.Replication {
	var r roster.Replication
	for line := range bytes.Lines(info) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		switch string(name) {
		case "role":
			r.Replica = string(value) != "master"
		case "master_replid":
			r.ID = members.ShortRun(string(value))
		case "master_replid2":
			r.Was = len(bytes.Trim(value, "0")) > 0
		}
	}
	return r
}
