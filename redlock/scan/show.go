package scan

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/redlock/stream"
)

// lookStep is the number of keys that masters are asked for at a time. Lock commands wait
// behind them for some 20 us.
const lookStep = 16

// After each question a walk rests restShare times as long as the masters took, but for
// leastRest at least and mostRest at most. So it takes little from lock commands, and comes
// to its end also where masters are slow.
const (
	restShare = 3
	leastRest = time.Millisecond
	mostRest  = 50 * time.Millisecond
)

func restAfter(took time.Duration) time.Duration {
	return min(max(restShare*took, leastRest), mostRest)
}

// Walk calls each with a few keys at a time, from all databases, and with what the masters
// hold under them. wants tells which keys to look at. It ends early if each returns false, or
// with ctx. A key comes once for each master that has it, or more often. all is true if
// every lock that was held all the time was shown.
func (r *Reader) Walk(ctx context.Context, wants func(db int, key []byte) bool, each func(db int, key []byte, copies []Copy) (more bool)) (all bool) {
	s := show{ctx: ctx, look: r.Look, wants: wants, each: each, asked: time.Now()}
	return Walk(ctx, Masters{Set: r.box.Masters}, s.visit)
}

// A show is one Walk of a Reader.
type show struct {
	ctx   context.Context
	look  func(db int, keys [][]byte) [][]Copy
	wants func(db int, key []byte) bool
	each  func(db int, key []byte, copies []Copy) (more bool)
	asked time.Time // when the masters were asked last
}

// visit looks at the keys of a page, a few at a time.
func (s *show) visit(db int, found [][]byte) (more bool) {
	s.rest()
	found = slices.DeleteFunc(found, func(key []byte) bool { return !s.wants(db, key) })
	for keys := range slices.Chunk(found, lookStep) {
		if s.ctx.Err() != nil {
			return false
		}
		for k, copies := range s.look(db, keys) {
			if !s.each(db, keys[k], copies) {
				return false
			}
		}
		s.rest()
	}
	return true
}

func (s *show) rest() {
	stream.Sleep(s.ctx, restAfter(time.Since(s.asked)))
	s.asked = time.Now()
}
