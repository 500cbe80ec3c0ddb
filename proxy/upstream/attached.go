package upstream

import (
	"time"
)

// attach has the client's loop feed the connection. It returns false if the loop has ended.
func (c *Conn) attach() bool {
	client := c.options.Client
	if !c.conn.Attach(client.Loop(), c.options.Task, feeder{c}) {
		return false
	}
	c.conn.ReadLike(client)
	c.conn.Resume()
	return true
}

// A feeder feeds a connection on the loop. It never waits there: while another goroutine writes
// to the client, or the client does not read, it has the loop read nothing from the upstream.
type feeder struct{ *Conn }

func (f feeder) Received(p []byte) {
	switch {
	case f.stopped || f.finished:
	case len(f.backlog) == 0 && (f.locked || f.options.Client.TryLock()):
		f.feed(p)
	default:
		f.backlog = append(f.backlog, p...)
		f.awaitClient()
	}
}

func (f feeder) Ended(error) {
	if f.over = true; len(f.backlog) == 0 {
		f.finish()
	}
}

// feed feeds bytes with the client's writing side locked. It keeps the lock if it ends inside a
// value for the client.
func (f feeder) feed(p []byte) {
	f.locked = true
	if !f.Feed(p) {
		f.finish()
		return
	}
	f.unlockBetween()
	if f.draining.Load() {
		f.conn.ReadUntil(time.Now().Add(drainSilence))
	}
	if f.options.Client.IsFull() && f.options.Client.WhenRoom(f.conn.Resume) {
		f.conn.Pause()
	}
}

// awaitClient feeds the backlog as soon as nobody else writes to the client.
func (f feeder) awaitClient() {
	if f.awaits {
		return
	}
	f.awaits = true
	f.conn.Pause()
	go func() {
		f.options.Client.Lock()
		if !f.options.Client.Loop().Do(f.feedBacklog) {
			f.options.Client.Unlock()
		}
	}()
}

// feedBacklog is called on the loop with the client's writing side locked.
func (f feeder) feedBacklog() {
	f.awaits, f.locked = false, true
	p := f.backlog
	f.backlog = nil
	f.conn.Resume()
	if f.feed(p); f.over {
		f.finish()
	}
}

// finish ends the connection. It may be called again.
func (f feeder) finish() {
	if f.finished {
		return
	}
	f.finished = true
	if f.locked = f.locked || f.options.Client.TryLock(); !f.locked {
		f.kept = nil // a beginning of a value; nobody misses it
	}
	f.End()
}
