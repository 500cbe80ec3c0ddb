package timing

import "time"

// Limits are the part of the configuration that decides who may vote and when.
type Limits struct {
	MasterTimeout time.Duration // how long a ballot waits for a master's vote
	ClockDrift    float64       // the fraction of a time by which clocks may run apart
	// RestartDelay is the shortest time for which a master that may have forgotten locks does
	// not vote. It must be LeastRestartDelay at least. MaxQuarantine is the longest, for longer
	// TTLs.
	RestartDelay, MaxQuarantine time.Duration
}

const (
	// BeatPause is the time between two checks of an idle master.
	BeatPause = time.Second
	// MarkAgain is how long to wait for the answer to a write before it is planned again.
	MarkAgain = 500 * time.Millisecond
	// Recently is the greatest age of a reading on which a step that other masters learn of may be
	// based.
	Recently = 3 * BeatPause / 2
	// TurnGrace is the time after which every stream has read that the record of the longest TTL
	// has turned.
	TurnGrace = 5 * BeatPause
	// watchPause is how long another process takes to write down a jump of a clock, without
	// JumpPatience.
	watchPause = 3 * BeatPause / 2
)

// Apart is the time to wait by one clock until at least d has passed by every other clock.
func (l Limits) Apart(d time.Duration) time.Duration {
	return d + 2*time.Duration(float64(d)*l.ClockDrift)
}

// Quarantine returns how long a master that may have forgotten locks does not vote: until every
// lock that it may have forgotten has ended.
func (l Limits) Quarantine(longest time.Duration) time.Duration {
	return max(l.RestartDelay, min(longest, l.MaxQuarantine))
}

// LateMark is how long after its planning a marker may still be written, by the master's clock. It
// suffices for a slow master. But the marker may be planned for one that was missing Recently. If
// another process wrote it then, the master must not vote and forget again before the late one.
func (l Limits) LateMark() time.Duration {
	return min(max(MarkAgain, 2*l.MasterTimeout), l.RestartDelay-l.Apart(Recently))
}

// LeastRestartDelay is the shortest RestartDelay that leaves a marker time enough (LateMark). A
// master that answers within MasterTimeout gets its marker.
func (l Limits) LeastRestartDelay() time.Duration {
	return l.Apart(Recently + max(MarkAgain, l.MasterTimeout))
}

// Turn returns how long after its turn a record of the longest TTL may turn again. before is the
// longest TTL that was granted before the turn. By then every such lock has ended, even by a slower
// clock than the one that measures it.
func (l Limits) Turn(before time.Duration) time.Duration {
	kept := max(before, l.RestartDelay)
	return kept + time.Duration(float64(kept)*l.ClockDrift) + TurnGrace
}

// JumpPatience is how long a jump of a clock waits to be written down, for ballots that raise the
// longest TTL. If they may take longer, the cap is written first, because a process that has just
// started watches no longer than this.
func (l Limits) JumpPatience() time.Duration { return min(l.MasterTimeout, BeatPause/2) }

// Watch is how long a process watches a master's clock before it counts its votes. It cannot know of
// an earlier jump. Another living process knows of it, and has written it down by then.
func (l Limits) Watch() time.Duration { return watchPause + l.JumpPatience() }
