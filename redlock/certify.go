package redlock

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// markerQuestion is what a master is asked for its marker.
var markerQuestion = resp.AppendCommand(nil, "GET", roster.MarkerKey)

// checked is what a stream remembers of its last check, so that the next one,
// which mostly finds the same, is cheap.
type checked struct {
	valid    bool
	text     string
	version  uint64 // of the roster that judged it
	standing roster.Standing
	marker   roster.Marker
	noted    roster.Standing // as the roster knows it
}

// Judge reads a check and says whether its batch's votes count.
func (s *masterDB) Judge(c stream.Check) stream.Judgement {
	m, last, p := s.master, &s.checked, s.place()
	sent, received := moment{c.Sent, c.Slept}, c.Received
	if c.Info != nil {
		now := readReplication(c.Info)
		m.voters.do(func(r *roster.Roster) { r.Replicates(p, now, received) })
	}
	marker, isText := resp.ParseBulk(c.Marker)
	server, ok := resp.ParseTime(c.Time)
	if resp.CannotServe(c.Marker) || !ok || !c.Fits {
		s.note(roster.Standing{State: roster.Uncertified, Reason: "it answers that it cannot serve now"})
		return stream.Judgement{}
	}
	limits := m.settings()
	if received.Round(0).Sub(sent.at.Round(0))-received.Sub(sent.at) >= slumberStep {
		m.slumber.look() // the time of day has gone on without us
	}
	jump, slept := m.clock.observe(sent, received, server, limits.ClockDrift, m.slumber)
	switch {
	case jump.Forward():
		m.voters.do(func(r *roster.Roster) { r.Jumped(m.number, jump, received) }) // at once: other databases' streams are judged meanwhile
		m.log.Warn("the clock of a lock master has jumped forward, so locks on it ended early", "master", m.name(), "by", jump.Least.String())
	case jump.Backward():
		m.log.Warn("the clock of a lock master has jumped backward, so locks on it last longer", "master", m.name(), "by", (-jump.Most).String())
	}
	s.checkedAt.Store(sent.at.UnixNano())
	if s.hung.Swap(false) {
		last.noted = roster.Standing{}
	}
	version := m.voters.version.Load()
	anew := !last.valid || last.version != version || last.text != string(marker)
	if anew {
		broken := !isText && !resp.IsNil(c.Marker)
		m.voters.do(func(r *roster.Roster) {
			last.standing, last.marker = r.Checked(p, string(marker), broken, sent.at, received)
		})
		last.valid, last.version, last.text = true, version, string(marker)
	}
	st := last.standing.At(last.marker, roster.Reading{
		Clock: server, Received: received,
		Unsure: c.Unsure, Suspended: slept, Jumped: jump.Forward(),
		Watched: m.clock.watchedFor(received), Witnessed: m.voters.witnessed.Load(),
	}, limits.forRoster())
	if st.State == roster.Quarantined {
		m.voters.do(func(r *roster.Roster) { r.ClockIs(p, server.Milliseconds()) })
	}
	s.note(st)
	return stream.Judgement{Votes: st.State == roster.Certified, Covers: st.Covers, Longest: last.marker.Longest, Anew: anew}
}

// note tells the roster how a place stands, where that is news.
func (s *masterDB) note(st roster.Standing) {
	noted := &s.checked.noted
	moved := st.Until.Sub(noted.Until).Abs() > time.Second // its clock was put back
	if noted.State != st.State || noted.Reason != st.Reason || noted.Longest != st.Longest || moved {
		*noted = st
		s.master.tell(s.db, st, time.Now())
	}
}

// certify keeps the masters' markers right until ctx ends: it writes what the
// roster plans, and has every master checked that nobody asks anything.
func (l *Locker) certify(ctx context.Context) {
	tick := time.NewTicker(roster.BeatLength)
	defer tick.Stop()
	before := time.Now()
	var judged uint64 // the roster's version by which all masters were last asked to be judged
	for {
		now := time.Now()
		l.slumber.look()
		for _, m := range l.plan(now) {
			l.mark(m, now)
		}
		version, unsettled := l.voters.version.Load(), ask(l.voters, (*roster.Roster).Unsettled)
		for _, m := range l.masters {
			m.askEviction(now)
			m.beat(now, version != judged || unsettled, now.Sub(before) > 2*roster.BeatLength)
		}
		judged, before = version, now
		select {
		case <-l.voters.wake:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// plan asks the roster what to write. It first hears when the places were asked
// last, which streams keep to themselves as long as the answers are the same.
func (l *Locker) plan(now time.Time) []roster.Write {
	asked := map[roster.Place]time.Time{}
	for i, m := range l.masters {
		for _, s := range m.all() {
			asked[roster.Place{Master: i, DB: s.db}] = time.Unix(0, s.checkedAt.Load())
		}
	}
	return ask(l.voters, func(r *roster.Roster) []roster.Write {
		for p, at := range asked {
			r.Asked(p, at)
		}
		return r.Tick(now, l.settings().forRoster())
	})
}

// mark writes a marker. What came of it is seen by the check behind it.
func (l *Locker) mark(m roster.Write, now time.Time) {
	master := l.masters[m.Master]
	if m.Cause != 0 {
		l.log.Warn("a lock master may have forgotten locks, and does not vote until all of them have ended",
			"master", master.name(), "db", m.DB, "reason", m.Reason,
			"quarantine", m.Marker.Quarantine.String())
	}
	master.stream(m.DB).Send(stream.Call{Replies: 1, Asker: stream.AskerFunc(func(replies [][]byte, _ stream.Judgement, err error) {
		if err != nil {
			return
		}
		if done, err := parseDone(replies); done && err == nil {
			l.voters.do(func(r *roster.Roster) { r.Wrote(m, time.Now()) })
			if m.Cause != 0 {
				l.observer.Forgot(master.name(), m.Cause)
			}
		}
		if resp.IsError(replies[0]) {
			l.log.Error("a lock master refuses its marker, and cannot vote without; grant GET, SET, TIME and EVAL to the proxy's user",
				"master", master.name(), "db", m.DB, "error", resp.ErrorText(replies[0]))
		}
	})}, stream.Sending{Frames: markerFrames(m, master.clock.leastAt(moment{now, master.slumber.last()})+l.lateMark())}, now)
}

// lateMark is how long after it was planned a marker may still be written.
func (l *Locker) lateMark() time.Duration { return max(roster.MarkAgain, 2*l.settings().MasterTimeout) }

// mostDatabases bounds how many databases of a master are looked after at once.
// One beyond it is given its marker when it is used, as one that was flushed.
const mostDatabases = 1024

var spreads = [...]string{roster.WriteHere: "here", roster.WriteLacking: "lacking", roster.WriteAll: "all"}

// markerFrames encodes a mark. It must not be executed later than latest, by the
// master's clock.
func markerFrames(m roster.Write, latest time.Duration) []byte {
	s := markScript
	args, turns := [][]byte{resp.Decimal(int64(m.DB)), []byte(m.Seen)}, "keep"
	if m.Turn {
		turns = "turn"
	}
	switch m.Kind {
	case roster.EditAll:
		s = editScript
		args = append(args, []byte(m.Marker.Set), []byte(m.Marker.Who()), []byte(turns))
	case roster.UpgradeAll:
		s = upgradeScript
		args = append(args, []byte(m.Marker.String()), listUsed(m.Used))
	default:
		args = append(args, resp.Decimal(latest.Milliseconds()), []byte(m.Marker.String()), []byte(spreads[m.Kind]))
	}
	return s.append(nil, [][]byte{[]byte(roster.MarkerKey)}, append(args, resp.Decimal(mostDatabases))...)
}

// listUsed words databases that were in use for upgrade.lua.
func listUsed(databases []int) []byte {
	if databases == nil {
		return []byte("all")
	}
	list := []byte{','}
	for _, db := range databases {
		list = append(strconv.AppendInt(list, int64(db), 10), ',')
	}
	return list
}

// covered is a TTL as markers have it: not above what a quarantine can cover,
// and rounded up, so that few markers are written where TTLs vary.
func (l *Locker) covered(ttl time.Duration) time.Duration {
	step := max(time.Second, ttl/8)
	return min((ttl+step-1)/step*step, l.settings().MaxQuarantine)
}

// raise makes the longest TTL known to a quorum of masters, for a lock whose
// TTL was known only when it was won.
func (l *Locker) raise(db int, ttl time.Duration) Verdict {
	lives := l.covered(ttl)
	frames := raiseScript.append(nil, [][]byte{[]byte(roster.MarkerKey)}, resp.Decimal(int64(db)), resp.Decimal(lives.Milliseconds()))
	return hold(l, frames, question[bool]{
		kind:    KindExtend,
		db:      db,
		replies: 1,
		lives:   lives,
		parse:   parseDone,
		vote:    voteOf,
		decide: func(answers []quorum.Answer[bool], _ time.Duration) Verdict {
			return quorum.Count(answers, isGranted).Acquire()
		},
	}).verdict
}
