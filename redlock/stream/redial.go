package stream

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"redlock-proxy/redlock/resp"
)

const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

// A Backoff paces the connections to one master, so that one which is away,
// or ends each connection as soon as it can, costs next to nothing.
type Backoff struct {
	backoff time.Duration // 0: firstBackoff
	brief   bool          // the last connection hardly lasted
}

// AtOnce hears that a connection has ended, and tells whether the next one may
// be dialled without a pause: mostly so, for a server that restarts ends each
// once, and what waits for the master should not wait longer.
func (r *Backoff) AtOnce(why error, lasted time.Duration) bool {
	brief := lasted < firstBackoff
	if isMalformed(why) || brief && r.brief {
		return false
	}
	r.backoff, r.brief = 0, brief
	return true
}

// Pause is how long to wait before the next attempt.
func (r *Backoff) Pause() time.Duration {
	backoff := max(r.backoff, firstBackoff)
	r.backoff = min(2*backoff, maxBackoff)
	return backoff/2 + rand.N(backoff)
}

// isMalformed tells whether a connection ended because its server does not send what
// a Redis does.
func isMalformed(why error) bool {
	var m resp.MalformedError
	return errors.As(why, &m)
}

// Sleep returns after d, or when ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
