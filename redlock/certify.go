package redlock

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// Each batch of questions to a master ends with three of our own: what the marker
// is, what time it is, and whether it is a replica or has been one (replication.go).
// Only when all are read and in order do the batch's votes count. Looking once a
// second would let a FLUSHALL, a jump of the clock or a failover there and back
// through.
var (
	checkWithRole = resp.AppendCommand(resp.AppendCommand(resp.AppendCommand(nil, "GET", roster.MarkerKey), "TIME"), "ROLE")
	checkWithInfo = resp.AppendCommand(resp.AppendCommand(resp.AppendCommand(nil, "GET", roster.MarkerKey), "TIME"), "INFO", "replication")
)

const checkReplies = 3

// checked is what a stream remembers of its last check, so that the next one,
// which mostly finds the same, is cheap.
type checked struct {
	valid    bool
	text     string
	info     []byte // on replication
	version  uint64 // of the roster that judged it
	standing roster.Standing
	marker   roster.Marker
	noted    roster.Standing // as the roster knows it
}

// judge reads a check, of which asked tells, and says whether its batch's votes
// count.
func (s *dbStream) judge(asked *call, replies [][]byte, received time.Time) roster.Standing {
	m, last, p := s.master, &s.checked, roster.Place{Master: s.master.number, DB: s.db}
	sent := moment{asked.sent, asked.slept}
	marker, isText := resp.ParseBulk(replies[0])
	server, ok := resp.ParseTime(replies[1])
	info, told := resp.ParseBulk(replies[2])
	sole := asked.role && bytes.Equal(replies[2], stream.RoleOfSole)
	if asked.role && !sole {
		s.askInfo()
	}
	if resp.CannotServe(replies[0]) || !ok || !told && !asked.role {
		return m.note(s.db, last, roster.Standing{State: roster.Uncertified, Reason: "it answers that it cannot serve now"})
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
	if !asked.role && (!last.valid || !bytes.Equal(last.info, info)) {
		last.info = append(last.info[:0], info...)
		now := readReplication(info)
		if !stream.IsSole(info) {
			s.askInfo()
		}
		m.voters.do(func(r *roster.Roster) { r.Replicates(p, now) })
	}
	version := m.voters.version.Load()
	if !last.valid || last.version != version || last.text != string(marker) {
		broken := !isText && !resp.IsNil(replies[0])
		m.voters.do(func(r *roster.Roster) {
			last.standing, last.marker = r.Checked(p, string(marker), broken, sent.at, received)
		})
		last.valid, last.version, last.text = true, version, string(marker)
		s.mu.Lock()
		s.longest = last.marker.Longest
		s.mu.Unlock()
	}
	st := last.standing.At(last.marker, roster.Reading{
		Clock: server, Received: received,
		Unsure: asked.role && !sole, Suspended: slept, Jumped: jump.Forward(),
		Watched: m.clock.watchedFor(received), Witnessed: m.voters.witnessed.Load(),
	}, limits.forRoster())
	if st.State == roster.Quarantined {
		m.voters.do(func(r *roster.Roster) { r.ClockIs(p, server.Milliseconds()) })
	}
	return m.note(s.db, last, st)
}

// note tells the roster how a place stands, where that is news.
func (m *master) note(db int, last *checked, st roster.Standing) roster.Standing {
	moved := st.Until.Sub(last.noted.Until).Abs() > time.Second // its clock was put back
	if last.noted.State != st.State || last.noted.Reason != st.Reason || last.noted.Longest != st.Longest || moved {
		last.noted = st
		m.tell(db, st, time.Now())
	}
	return st
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
	master.stream(m.DB).send(call{replies: 1, asker: askerFunc(func(replies [][]byte, _ roster.Standing, err error) {
		if err != nil {
			return
		}
		if done, err := parseDone(replies); done && err == nil {
			l.voters.do(func(r *roster.Roster) { r.Wrote(m) })
			if m.Cause != 0 {
				l.observer.Forgot(master.name(), m.Cause)
			}
		}
		if resp.IsError(replies[0]) {
			l.log.Error("a lock master refuses its marker, and cannot vote without; grant GET, SET, TIME and EVAL to the proxy's user",
				"master", master.name(), "db", m.DB, "error", resp.ErrorText(replies[0]))
		}
	})}, sending{frames: markerFrames(m, master.clock.leastAt(moment{now, master.slumber.last()})+l.lateMark())}, now)
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
