package stream

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
)

const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

// A Backoff paces the connections to one master. So a master that is unreachable, or that
// ends each connection at once, costs next to nothing.
type Backoff struct {
	Loop    *loop.Loop    // draws the pauses; may be nil
	backoff time.Duration // 0: firstBackoff
	brief   bool          // the last connection lasted less than firstBackoff
}

// AtOnce records that a connection has ended, and tells whether to dial the next one
// without a pause. Mostly it is true: a server that restarts ends each connection once,
// and the calls that wait for the master should not wait longer.
func (r *Backoff) AtOnce(why error, lasted time.Duration) bool {
	brief := lasted < firstBackoff
	if isMalformed(why) || brief && r.brief {
		return false
	}
	r.backoff, r.brief = 0, brief
	return true
}

// Pause returns how long to wait before the next attempt. Each call doubles it, up to
// maxBackoff.
func (r *Backoff) Pause() time.Duration {
	backoff := max(r.backoff, firstBackoff)
	r.backoff = min(2*backoff, maxBackoff)
	return backoff/2 + r.Loop.Draw(backoff)
}

// isMalformed tells whether a connection ended because its server sent what no Redis
// sends.
func isMalformed(why error) bool {
	var m resp.MalformedError
	return errors.As(why, &m)
}

// A problem is the text of the malformed reply that was logged last. What listens at a
// master's address may be no Redis at all, and each redial would log that again.
type problem string

// isNews tells whether to log why a connection ended or could not be opened. connected
// tells whether the server had identified itself as a Redis on that connection.
func (p *problem) isNews(why error, connected bool) bool {
	if connected {
		*p = ""
	}
	if !isMalformed(why) || string(*p) == why.Error() {
		return false
	}
	*p = problem(why.Error())
	return true
}

// Sleep returns after d, or when ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	loop.FromContext(ctx).Loop().Wait(d, ctx.Done())
}
