package roster

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

// ReadMarker reads the value of MarkerKey; ok is false for any other text.
func ReadMarker(text string, now time.Time) (facts MarkerFacts, ok bool) {
	m, ok := ParseMarker(text)
	if !ok {
		return MarkerFacts{}, false
	}
	return MarkerFacts{
		Set: m.Set, Founded: foundedAt(m.Set, now), Member: m.Member, Members: m.Members, Epoch: m.Epoch, Run: m.Run,
		Since: time.UnixMilli(m.Since), Quarantine: m.Quarantine, Longest: m.Granted(),
	}, true
}
