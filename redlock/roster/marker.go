package roster

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

// A Marker is what a master remembers of itself: who it is, and since when its
// memory of a database is complete. The judgement lives there and not in a
// process's memory, so that several processes, and one that has just started,
// reach the same.
//
// Whatever concerns the whole server, as that it was restarted, is written to
// all its databases at once (mark.lua, edit.lua), also to those that nobody
// uses. So each marker stands for itself, and one that is missing in a set that
// exists was always flushed.
type Marker struct {
	DB      int    // the database it was written for
	Set     string // the set of masters it belongs to
	Member  int    // its number in the set, counted from 1
	Members int
	Epoch   int64
	// Joined tells, for each member, when the present one joined and who it is
	// (joined.go). So a process with an old list knows that one of its servers is
	// none any more.
	Joined []string
	// ReplID is the replication id of the server, which it changes when it has
	// been a replica, and may have loaded another's memory with this very text.
	ReplID string
	Run    string // the run id of the server process that has kept its memory
	// Since is the master's own time, in ms, from which on its memory of the
	// database is complete. sinceNow: when it is written.
	Since int64
	// Quarantine is how long after since it does not vote. It is decided when
	// since is written, so that every process reaches the same judgement, and
	// locks that are granted later do not prolong it.
	Quarantine time.Duration
	// Longest is the longest TTL granted in the set, to its knowledge, since turned,
	// the master's own time in ms, and before the longest that was granted earlier
	// and may not have ended. turnNow: when it is written.
	Longest, Before time.Duration
	Turned          int64
	// Databases are, in a marker of the first version, those that the set used. It
	// was written to these only (upgrade.lua). nil: it is none of those.
	Databases []int
}

const (
	MarkerVersion = "redlock-proxy/2"
	FirstVersion  = "redlock-proxy/1"
	SinceNow      = -1
	TurnNow       = -1
)

func (m Marker) String() string {
	return fmt.Sprintf("%s db=%d set=%s member=%d/%d%srun=%s since=%s quarantine=%d longest=%d before=%d turned=%s", MarkerVersion,
		m.DB, m.Set, m.Member, m.Members, m.Who(), m.Run, writtenTime(m.Since), m.Quarantine.Milliseconds(),
		m.Longest.Milliseconds(), m.Before.Milliseconds(), writtenTime(m.Turned))
}

// noReplid stands for that of a server which does not say.
const noReplid = "-"

// Who is the part of the text that says who the masters are.
func (m Marker) Who() string {
	return fmt.Sprintf(" epoch=%d joined=%s replid=%s ", m.Epoch, strings.Join(m.Joined, ","), cmp.Or(m.ReplID, noReplid))
}

// writtenTime words sinceNow and turnNow as what the scripts replace.
func writtenTime(ms int64) string {
	if ms < 0 {
		return "now"
	}
	return strconv.FormatInt(ms, 10)
}

// ParseMarker reads what String writes, a marker of the first version, and
// nothing else.
func ParseMarker(text string) (Marker, bool) {
	var m Marker
	version, rest, _ := strings.Cut(text, " ")
	words := strings.Split(rest, " ")
	if version == FirstVersion && len(words) == 9 {
		words = slices.Insert(words, 0, "db=0")
	}
	if version != MarkerVersion && version != FirstVersion || len(words) < 9 {
		return Marker{}, false
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
		ok = ok && n < int64(ForEver/time.Millisecond)
		return time.Duration(n) * time.Millisecond
	}
	m.DB = int(number(field("db")))
	m.Set = field("set")
	member, members, _ := strings.Cut(field("member"), "/")
	m.Member, m.Members = int(number(member)), int(number(members))
	m.Epoch = number(field("epoch"))
	m.Joined = strings.Split(field("joined"), ",")
	if version == MarkerVersion {
		if m.ReplID = field("replid"); m.ReplID == noReplid {
			m.ReplID = ""
		}
	}
	m.Run = field("run")
	m.Since = number(field("since"))
	m.Quarantine, m.Longest = duration(field("quarantine")), duration(field("longest"))
	if version == FirstVersion {
		for _, db := range strings.Split(field("dbs"), ",") {
			m.Databases = append(m.Databases, int(number(db)))
		}
	} else {
		m.Before, m.Turned = duration(field("before")), number(field("turned"))
	}
	ok = ok && len(words) == 0 && m.Member >= 1 && m.Member <= m.Members && len(m.Joined) == m.Members && m.Since < int64(ForEver/time.Millisecond)
	return m, ok
}

// sameMemory: another marker tells of the same memory as m does, be it that another
// TTL or another epoch is on record.
func (m Marker) sameMemory(other Marker) bool {
	return m.DB == other.DB && m.Set == other.Set && m.Member == other.Member && m.Run == other.Run && m.Since == other.Since && m.Quarantine == other.Quarantine
}

// OfFirstVersion tells that it was written by the version before.
func (m Marker) OfFirstVersion() bool { return m.Databases != nil }

// VotesFrom is when the quarantine is over, in ms of the master's own time.
func (m Marker) VotesFrom() int64 { return m.Since + m.Quarantine.Milliseconds() }

// Granted is the longest TTL that a lock may have which has not ended.
func (m Marker) Granted() time.Duration { return max(m.Longest, m.Before) }

// covers is the longest TTL that a lock may have which is granted when the
// master's own time is now. Who asks for one has it put on record with longest, and
// who did so before the record turned may not have read of that.
func (m Marker) covers(now time.Duration) time.Duration {
	if past := now - time.Duration(m.Turned)*time.Millisecond; past >= 0 && past < turnGrace {
		return m.Granted()
	}
	return m.Longest
}

// turnGrace is how long after the record has turned every stream has read of it.
const turnGrace = 5 * BeatPause

// turns is how long after it turned a record may turn again: what was granted before
// has ended then, also by a clock that is slower than the one that says so.
func (m Marker) turns(limits Limits) time.Duration {
	kept := max(m.Before, limits.RestartDelay)
	return kept + time.Duration(float64(kept)*limits.ClockDrift) + turnGrace
}

// forEver keeps sums of times from overflowing.
const ForEver = 100 * 365 * 24 * time.Hour

// quarantine is how long a master that may have forgotten locks does not vote:
// until every lock that it may have forgotten has ended.
func quarantine(restartDelay, longest, most time.Duration) time.Duration {
	return max(restartDelay, min(longest, most))
}
