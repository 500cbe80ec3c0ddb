package redlock

import "time"

// MarkerFacts is what a marker says, for those who show it to people.
type MarkerFacts struct {
	Set     string
	Founded time.Time // when the set began; zero: that is not known
	Member  int       // counted from 1
	Members int
	Epoch   int64
	Run     string // the run id of the server process that it was written for
	// Since is the master's own time from which on its memory is complete, the
	// Unix epoch for a master that was there when the set began.
	Since      time.Time
	Quarantine time.Duration // how long after Since it does not vote
	Longest    time.Duration // the longest TTL granted
}

// readMarkerFacts reads the value of MarkerKey; ok is false for any other text.
func readMarkerFacts(text string, now time.Time) (facts MarkerFacts, ok bool) {
	m, ok := parseMarker(text)
	if !ok {
		return MarkerFacts{}, false
	}
	return MarkerFacts{
		Set: m.set, Founded: foundedAt(m.set, now), Member: m.member, Members: m.members, Epoch: m.epoch, Run: m.run,
		Since: time.UnixMilli(m.since), Quarantine: m.quarantine, Longest: m.granted(),
	}, true
}
