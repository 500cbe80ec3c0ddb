package redlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MarkerKey is the one key of ours on a master, in each database used. No
// client may touch it.
const MarkerKey = "redlock-proxy:master"

// A marker is what a master remembers of itself: who it is, and since when its
// memory is complete. The judgement lives there and not in a process's memory,
// so that several processes, and one that has just started, reach the same.
type marker struct {
	set     string // the set of masters it belongs to
	member  int    // its number in the set, counted from 1
	members int
	epoch   int64
	// joined tells, for each member, when the present one joined and who it is
	// (joined.go). So a process with an old list knows that one of its servers is
	// none any more.
	joined []string
	run    string // the run id of the server process that has kept its memory
	// since is the master's own time, in ms, from which on its memory is
	// complete. It is only ever raised. sinceNow: when it is written.
	since int64
	// quarantine is how long after since it does not vote. It is decided when
	// since is written, so that every process reaches the same judgement, and
	// locks that are granted later do not prolong it.
	quarantine time.Duration
	longest    time.Duration // the longest TTL granted in the set, to its knowledge
	// databases are those that the set uses, in the marker of database 0 only. A
	// listed one without a marker was flushed; another is used for the first time.
	databases []int
}

const (
	markerVersion = "redlock-proxy/1"
	sinceNow      = -1
)

func (m marker) String() string {
	since := "now"
	if m.since != sinceNow {
		since = strconv.FormatInt(m.since, 10)
	}
	return fmt.Sprintf("%s set=%s member=%d/%d epoch=%d joined=%s run=%s since=%s quarantine=%d longest=%d dbs=%s", markerVersion,
		m.set, m.member, m.members, m.epoch, strings.Join(m.joined, ","), m.run, since, m.quarantine.Milliseconds(), m.longest.Milliseconds(), listNumbers(m.databases))
}

// parseMarker reads what String writes, and nothing else.
func parseMarker(text string) (marker, bool) {
	var m marker
	words := strings.Split(text, " ")
	if len(words) != 10 || words[0] != markerVersion {
		return marker{}, false
	}
	ok := true
	field := func(i int, name string) string {
		value, found := strings.CutPrefix(words[i], name+"=")
		ok = ok && found && value != ""
		return value
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		ok = ok && err == nil && n >= 0
		return n
	}
	m.set = field(1, "set")
	member, members, _ := strings.Cut(field(2, "member"), "/")
	m.member, m.members = int(number(member)), int(number(members))
	m.epoch = number(field(3, "epoch"))
	m.joined = strings.Split(field(4, "joined"), ",")
	m.run = field(5, "run")
	m.since = number(field(6, "since"))
	duration := func(text string) time.Duration {
		n := number(text)
		ok = ok && n < int64(forEver/time.Millisecond)
		return time.Duration(n) * time.Millisecond
	}
	m.quarantine, m.longest = duration(field(7, "quarantine")), duration(field(8, "longest"))
	for _, db := range strings.Split(field(9, "dbs"), ",") {
		m.databases = append(m.databases, int(number(db)))
	}
	ok = ok && m.member >= 1 && m.member <= m.members && len(m.joined) == m.members && m.since < int64(forEver/time.Millisecond)
	return m, ok
}

func listNumbers(numbers []int) string {
	words := []string{"0"}
	for _, n := range numbers {
		if n != 0 {
			words = append(words, strconv.Itoa(n))
		}
	}
	return strings.Join(words, ",")
}

// votesFrom is when the quarantine is over, in ms of the master's own time.
func (m marker) votesFrom() int64 { return m.since + m.quarantine.Milliseconds() }

// forEver keeps sums of times from overflowing.
const forEver = 100 * 365 * 24 * time.Hour

// quarantine is how long a master that may have forgotten locks does not vote:
// until every lock that it may have forgotten has ended.
func quarantine(restartDelay, longest, most time.Duration) time.Duration {
	return max(restartDelay, min(longest, most))
}
