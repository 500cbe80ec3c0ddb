package loop

import (
	"sync/atomic"
	"time"
)

// A progress is when a connection last got on. The loop notes the time of its round, so that reading and writing ask
// for none. Any goroutine may read it.
type progress struct {
	blocked atomic.Bool  // the source takes no more, and tells when it does
	tookAt  atomic.Int64 // when it began to take no more, or has taken something since
	cameAt  atomic.Int64 // when bytes came, or reading began
}

func (p *progress) came(now int64) { p.cameAt.Store(now) }
func (p *progress) took(now int64) { p.tookAt.Store(now) }

// Silent is the time since bytes last came. It begins again with each Resume.
func (s *Socket) Silent(now time.Time) time.Duration { return since(now, &s.cameAt) }

// Stalled is the time for which bytes have waited and the other side has taken none.
func (s *Socket) Stalled(now time.Time) time.Duration {
	if !s.blocked.Load() {
		return 0
	}
	return since(now, &s.tookAt)
}

// Quiet is the time for which the other side has sent nothing, and has taken nothing of what it had to be waited for.
// It is 0 during a Pause, for which the other side is not to blame.
func (s *Socket) Quiet(now time.Time) time.Duration {
	if s.paused.Load() {
		return 0
	}
	return min(s.Silent(now), since(now, &s.tookAt))
}

func since(now time.Time, at *atomic.Int64) time.Duration {
	return max(0, now.Sub(processStart)-time.Duration(at.Load()))
}
