package marker

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/redlock/members"
)

// Key is our one key on a master. Every database of the master has it. No client may
// touch it.
const Key = "redlock-proxy:master"

// Databases is how many databases of a master can hold locks: those that one script can write a
// marker to. What concerns the whole server would not be on record in another one.
const Databases = 1024

// A Marker is a master's record of itself: who it is, and since when its memory of a database
// is complete. The judgement is stored there and not in a process's memory. So several
// processes, and one that has just started, reach the same judgement.
//
// What concerns the whole server, such as a restart, is written to all its databases at once
// (mark.lua, edit.lua), used or not. So each marker is complete in itself, and a marker that is
// missing in an existing set was always flushed.
type Marker struct {
	DB      int    // the database it was written for
	Set     string // the set of masters it belongs to
	Member  int    // its number in the set, counted from 1
	Members int
	Epoch   int64
	// Joined says for each member who it is and when it joined. So a process with an old list
	// knows that one of its servers is no member any more.
	Joined members.List
	// ReplID is the server's replication id. The id changes when the server has been a replica.
	// Then it may have loaded another server's memory with this very text.
	ReplID string
	Run    string // the run id of the server process that has kept its memory
	// Since is the master's own time, in ms, from which on its memory of the database is
	// complete. SinceNow means the time of the write.
	Since int64
	// Quarantine is how long after Since the master does not vote. It is decided when Since is
	// written. So every process reaches the same judgement, and later locks do not prolong it.
	Quarantine time.Duration
	// Longest is the longest TTL granted in the set since Turned, as far as the master knows.
	// Turned is the master's own time in ms. Before is the longest TTL that was granted earlier
	// and may not have ended. It is the cap if that could not be learned. TurnNow means the time of the write.
	Longest, Before time.Duration
	Turned          int64
	// Token is the largest fencing token that the master knows (package roster). 0: none.
	Token int64
}

const (
	// ResizedVersion begins a marker of a set whose number of masters was changed. An earlier version of this program
	// cannot read such a marker, so it neither counts that master nor writes to it.
	ResizedVersion = "redlock-proxy/4"
	Version        = "redlock-proxy/2"
	SinceNow       = -1
	TurnNow        = -1
)

// Nowhere is the database that a marker names if it counts in none. No server has so many. SWAPDB may
// have brought a marker to another database. If a new one is written in its place, the marker must
// not count there any more when a second SWAPDB brings it back (mark.lua).
const Nowhere = 1<<31 - 1

// Version returns the word with which the text begins.
func (m Marker) Version() string {
	if m.Joined.IsResized() {
		return ResizedVersion
	}
	return Version
}

func (m Marker) String() string {
	return fmt.Sprintf("%s db=%d set=%s member=%d%srun=%s since=%s quarantine=%d longest=%d before=%d turned=%s%s", m.Version(),
		m.DB, m.Set, m.Member, m.Who(), m.Run, WrittenTime(m.Since), m.Quarantine.Milliseconds(),
		m.Longest.Milliseconds(), m.Before.Milliseconds(), WrittenTime(m.Turned), tokenSuffix(m.Token))
}

// noReplid stands for the replication id of a server that does not say it.
const noReplid = "-"

// Who returns the part of the text that says who the masters are.
func (m Marker) Who() string {
	return fmt.Sprintf("/%d epoch=%d joined=%s replid=%s ", m.Members, m.Epoch, strings.Join(m.Joined, ","), cmp.Or(m.ReplID, noReplid))
}

// WrittenTime writes SinceNow and TurnNow as the word that the scripts replace.
func WrittenTime(ms int64) string {
	if ms < 0 {
		return "now"
	}
	return strconv.FormatInt(ms, 10)
}

// Parse reads the text that String writes. It returns false for any other text.
func Parse(text string) (Marker, bool) {
	var m Marker
	text, m.Token = CutToken(text)
	version, rest, _ := strings.Cut(text, " ")
	words := strings.Split(rest, " ")
	if version != Version && version != ResizedVersion || len(words) != 12 {
		return Marker{}, false
	}
	ok := true
	field := func(name string) string {
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
	m.DB = int(number(field("db")))
	m.Set = field("set")
	own, all, _ := strings.Cut(field("member"), "/")
	m.Member, m.Members = int(number(own)), int(number(all))
	m.Epoch = number(field("epoch"))
	m.Joined = strings.Split(field("joined"), ",")
	ok = ok && m.Joined.IsResized() == (version == ResizedVersion) && m.Joined.IsValid()
	if m.ReplID = field("replid"); m.ReplID == noReplid {
		m.ReplID = ""
	}
	m.Run = field("run")
	m.Since = duration(field("since")).Milliseconds()
	m.Quarantine, m.Longest = duration(field("quarantine")), duration(field("longest"))
	m.Before, m.Turned = duration(field("before")), number(field("turned"))
	return m, ok && m.Member >= 1 && m.Member <= m.Members && len(m.Joined) == m.Members
}

// SameMemory tells whether another marker tells of the same memory as m. It may record another
// TTL or another epoch.
func (m Marker) SameMemory(other Marker) bool {
	return m.DB == other.DB && m.Set == other.Set && m.Member == other.Member && m.Run == other.Run && m.Since == other.Since && m.Quarantine == other.Quarantine
}

// VotesFrom returns the end of the quarantine, in ms of the master's own time.
func (m Marker) VotesFrom() int64 { return m.Since + m.Quarantine.Milliseconds() }

// Granted returns the longest TTL that an unended lock may have.
func (m Marker) Granted() time.Duration { return max(m.Longest, m.Before) }

// forEver keeps sums of times from overflowing.
const forEver = 100 * 365 * 24 * time.Hour
