package master

import (
	"context"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// certify keeps the masters' markers right until ctx ends. It writes what the roster
// plans, and has idle masters checked.
func (s *Set) certify(ctx context.Context) {
	before := time.Now()
	tick := before.Add(roster.BeatLength)
	var judged uint64 // version of the roster at the last check of all masters
	for {
		s.tend(time.Now())        // it may wait for streams to end
		slept := s.slumber.look() // before now: if this machine is suspended after that, what it plans is late
		now := time.Now()
		for _, m := range s.plan(now) {
			s.mark(m, moment{now, slept})
		}
		version, unsettled := s.voters.version.Load(), s.voters.unsettled.Load()
		for _, m := range s.List().masters {
			m.tellQueued()
			m.askEviction(now)
			m.listen(now, now.Sub(before) > 2*roster.BeatLength)
			m.beat(now, version != judged || unsettled)
		}
		judged, before = version, now
		switch s.loop.Wait(time.Until(tick), ctx.Done(), s.voters.wake) {
		case 0:
			return
		case loop.Late:
			tick = time.Now().Add(roster.BeatLength)
		}
	}
}

// plan asks the roster which markers to write. First it tells the roster when each place
// was last checked. Streams do not report that while the answers stay the same.
func (s *Set) plan(now time.Time) []roster.Write {
	asked := map[roster.Place]reading{}
	for _, m := range s.List().masters {
		for _, d := range m.all() {
			asked[d.place()] = d.latest.load()
		}
	}
	return ask(s.voters, func(r *roster.Roster) []roster.Write {
		for p, read := range asked {
			r.Step(roster.Asked{Place: p, At: read.at, Token: read.token}, now)
		}
		return r.Tick(now, s.limits.Load().Limits)
	})
}

// mark writes a marker that was planned at a moment. The check behind it shows the result.
func (s *Set) mark(m roster.Write, planned moment) {
	master := s.At(m.Master)
	if m.Cause != 0 {
		s.log.Warn("a lock master may have forgotten locks, and does not vote until all of them have ended (deploy/INCIDENTS.md#quarantined)",
			"master", master.Name(), "db", m.DB, "reason", m.Reason,
			"quarantine", m.Marker.Quarantine.String())
	}
	master.database(m.DB).Send(stream.Call{Replies: 1, Asker: stream.AskerFunc(func(replies [][]byte, _ stream.Judgement, err error) {
		if err != nil {
			return
		}
		if done, ok := resp.ParseInteger(replies[0]); ok && done > 0 {
			s.voters.step(roster.Wrote{Write: m}, time.Now())
			if m.Cause != 0 {
				s.observer.Forgot(master.Name(), m.Cause)
			}
		}
		if resp.IsError(replies[0]) {
			master.logRefusal("a lock master refuses the write of its marker, and cannot vote without it (deploy/INCIDENTS.md#rejected)", Refusal(replies[0]))
		}
	})}, stream.Sending{Frames: AppendMark(nil, m, master.clock.leastAt(planned)+s.limits.Load().LateMark())}, planned.at)
}
