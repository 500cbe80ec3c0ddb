package redlock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MarkerKey is the one key of ours on a master, in every database that it has.
// No client may touch it.
const MarkerKey = "redlock-proxy:master"

// A marker is what a master remembers of itself: who it is, and since when its
// memory of a database is complete. The judgement lives there and not in a
// process's memory, so that several processes, and one that has just started,
// reach the same.
//
// Whatever concerns the whole server, as that it was restarted, is written to
// all its databases at once (mark.lua, edit.lua), also to those that nobody
// uses. So each marker stands for itself, and one that is missing in a set that
// exists was always flushed.
type marker struct {
	db      int    // the database it was written for
	set     string // the set of masters it belongs to
	member  int    // its number in the set, counted from 1
	members int
	epoch   int64
	// joined tells, for each member, when the present one joined and who it is
	// (joined.go). So a process with an old list knows that one of its servers is
	// none any more.
	joined []string
	// replid is the replication id of the server, which it changes when it has
	// been a replica, and may have loaded another's memory with this very text.
	replid string
	run    string // the run id of the server process that has kept its memory
	// since is the master's own time, in ms, from which on its memory of the
	// database is complete. sinceNow: when it is written.
	since int64
	// quarantine is how long after since it does not vote. It is decided when
	// since is written, so that every process reaches the same judgement, and
	// locks that are granted later do not prolong it.
	quarantine time.Duration
	// longest is the longest TTL granted in the set, to its knowledge, since turned,
	// the master's own time in ms, and before the longest that was granted earlier
	// and may not have ended. turnNow: when it is written.
	longest, before time.Duration
	turned          int64
	// databases are, in a marker of the first version, those that the set used. It
	// was written to these only (upgrade.lua). nil: it is none of those.
	databases []int
}

const (
	markerVersion = "redlock-proxy/2"
	firstVersion  = "redlock-proxy/1"
	sinceNow      = -1
	turnNow       = -1
)

func (m marker) String() string {
	return fmt.Sprintf("%s db=%d set=%s member=%d/%d%srun=%s since=%s quarantine=%d longest=%d before=%d turned=%s", markerVersion,
		m.db, m.set, m.member, m.members, m.who(), m.run, writtenTime(m.since), m.quarantine.Milliseconds(),
		m.longest.Milliseconds(), m.before.Milliseconds(), writtenTime(m.turned))
}

// noReplid stands for that of a server which does not say.
const noReplid = "-"

// who is the part of the text that says who the masters are.
func (m marker) who() string {
	return fmt.Sprintf(" epoch=%d joined=%s replid=%s ", m.epoch, strings.Join(m.joined, ","), cmp.Or(m.replid, noReplid))
}

// writtenTime words sinceNow and turnNow as what the scripts replace.
func writtenTime(ms int64) string {
	if ms < 0 {
		return "now"
	}
	return strconv.FormatInt(ms, 10)
}

// parseMarker reads what String writes, a marker of the first version, and
// nothing else.
func parseMarker(text string) (marker, bool) {
	var m marker
	version, rest, _ := strings.Cut(text, " ")
	words := strings.Split(rest, " ")
	if version == firstVersion && len(words) == 9 {
		words = slices.Insert(words, 0, "db=0")
	}
	if version != markerVersion && version != firstVersion || len(words) < 9 {
		return marker{}, false
	}
	ok := true
	field := func(name string) string {
		if len(words) == 0 {
			ok = false
			return ""
		}
		value, found := strings.CutPrefix(words[0], name+"=")
		words = words[1:]
		ok = ok && found && value != ""
		return value
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		ok = ok && err == nil && n >= 0
		return n
	}
	duration := func(text string) time.Duration {
		n := number(text)
		ok = ok && n < int64(forEver/time.Millisecond)
		return time.Duration(n) * time.Millisecond
	}
	m.db = int(number(field("db")))
	m.set = field("set")
	member, members, _ := strings.Cut(field("member"), "/")
	m.member, m.members = int(number(member)), int(number(members))
	m.epoch = number(field("epoch"))
	m.joined = strings.Split(field("joined"), ",")
	if version == markerVersion {
		if m.replid = field("replid"); m.replid == noReplid {
			m.replid = ""
		}
	}
	m.run = field("run")
	m.since = number(field("since"))
	m.quarantine, m.longest = duration(field("quarantine")), duration(field("longest"))
	if version == firstVersion {
		for _, db := range strings.Split(field("dbs"), ",") {
			m.databases = append(m.databases, int(number(db)))
		}
	} else {
		m.before, m.turned = duration(field("before")), number(field("turned"))
	}
	ok = ok && len(words) == 0 && m.member >= 1 && m.member <= m.members && len(m.joined) == m.members && m.since < int64(forEver/time.Millisecond)
	return m, ok
}

// ofFirstVersion tells that it was written by the version before.
func (m marker) ofFirstVersion() bool { return m.databases != nil }

// votesFrom is when the quarantine is over, in ms of the master's own time.
func (m marker) votesFrom() int64 { return m.since + m.quarantine.Milliseconds() }

// granted is the longest TTL that a lock may have which has not ended.
func (m marker) granted() time.Duration { return max(m.longest, m.before) }

// covers is the longest TTL that a lock may have which is granted when the
// master's own time is now. Who asks for one has it put on record with longest, and
// who did so before the record turned may not have read of that.
func (m marker) covers(now time.Duration) time.Duration {
	if past := now - time.Duration(m.turned)*time.Millisecond; past >= 0 && past < turnGrace {
		return m.granted()
	}
	return m.longest
}

// turnGrace is how long after the record has turned every stream has read of it.
const turnGrace = 5 * beatPause

// turns is how long after it turned a record may turn again: what was granted before
// has ended then, also by a clock that is slower than the one that says so.
func (m marker) turns(limits voteLimits) time.Duration {
	kept := max(m.before, limits.RestartDelay)
	return kept + time.Duration(float64(kept)*limits.ClockDrift) + turnGrace
}

// forEver keeps sums of times from overflowing.
const forEver = 100 * 365 * 24 * time.Hour

// quarantine is how long a master that may have forgotten locks does not vote:
// until every lock that it may have forgotten has ended.
func quarantine(restartDelay, longest, most time.Duration) time.Duration {
	return max(restartDelay, min(longest, most))
}
