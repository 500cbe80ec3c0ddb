package marker

import (
	"strconv"
	"strings"
	"time"
)

// Facts is the content of a marker, for display to people.
type Facts struct {
	Set     string
	Founded time.Time // when the set began; zero if unknown
	Member  int       // counted from 1
	Members int       // as many count
	Epoch   int64
	Run     string // the run id of the server process that it was written for
	// Since is the master's own time from which on its memory is complete. It is the Unix epoch
	// for a master that was there when the set began.
	Since      time.Time
	Quarantine time.Duration // how long after Since it does not vote
	Longest    time.Duration // the longest TTL granted
}

// IsLater tells whether a text is the marker of a later version.
func IsLater(text string) bool { return numberOf(text) > numberOf(ResizedVersion) }

// isEarlier tells whether a text is the marker of an earlier version, whose markers Parse refuses.
func isEarlier(text string) bool {
	n := numberOf(text)
	return n > 0 && n < numberOf(ResizedVersion) && n != numberOf(Version)
}

// numberOf returns the number of the version with which a text begins, or 0.
func numberOf(text string) int {
	version, _, _ := strings.Cut(text, " ")
	number, ours := strings.CutPrefix(version, "redlock-proxy/")
	n, err := strconv.Atoi(number)
	if err != nil || !ours {
		return 0
	}
	return n
}

// Unreadable says, to people, what a text under Key is that Parse refuses.
func Unreadable(text string) string {
	switch {
	case IsLater(text):
		return "its marker is of a later version of this program, so update this proxy; do not delete the key " + Key
	case isEarlier(text):
		return "its marker is of an earlier version of this program, which this one cannot read; when no proxy of that version runs any more and all its locks have ended, delete the key " + Key
	}
	return "its key " + Key + " is no marker; delete it if no other program needs it, or correct the address if another proxy listens there"
}

// Read reads the value of Key. It returns false for any text that is no marker.
func Read(text string, now time.Time) (facts Facts, ok bool) {
	m, ok := Parse(text)
	if !ok {
		return Facts{}, false
	}
	return Facts{
		Set: m.Set, Founded: foundedAt(m.Set, now), Member: m.Member, Members: m.Joined.Counting(), Epoch: m.Epoch, Run: m.Run,
		Since: time.UnixMilli(m.Since), Quarantine: m.Quarantine, Longest: m.Granted(),
	}, true
}
