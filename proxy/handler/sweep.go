package handler

import (
	"time"

	"redlock-proxy/proxy/config"
)

const (
	// sweepEvery is the longest pause between two sweeps. Idle times and other limits are
	// as exact as the pause.
	sweepEvery = time.Second
	// sweepOften is the shortest pause. It is for short limits.
	sweepOften = 10 * time.Millisecond
)

// sweepUntilStopped inspects all sessions in turn, so that none of them needs a timer or a
// deadline while all is well.
func (v *Service) sweepUntilStopped() {
	files := &fileWatch{allowed: openFilesAllowed, log: v.env.Log}
	for {
		limits := &v.env.Active.Load().Limits
		select {
		case <-v.door.running.Done():
			return
		case <-time.After(sweepPause(limits)):
		}
		sessions := v.All()
		files.look(len(sessions), limits)
		for _, s := range sessions {
			s.Inspect(limits)
		}
	}
}

// sweepPause returns a pause of at most a quarter of each limit. So a limit is exceeded by a
// quarter at most.
func sweepPause(limits *config.Limits) time.Duration {
	pause := sweepEvery
	for _, limit := range []time.Duration{limits.Idle, limits.LoginTime, limits.UnreadTime} {
		if limit > 0 {
			pause = min(pause, limit/4)
		}
	}
	return max(pause, sweepOften)
}
