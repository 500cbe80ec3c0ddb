package upstream

import "time"

// This file is how a member ends: with its client, or with its own connection.

// Drain says that the client sends no more. It gets what comes until the server has been silent for
// drainSilence (Look). Any goroutine may call it.
func (m *Member) Drain() { m.drains.Store(int64(time.Since(began))) }

// began is before every time.
var began = time.Now()

// Leave says that no more commands will be sent, as the end of a client's own connection would. A command that
// still blocks at the upstream could swallow an element. Replies of the member's own connection are still
// delivered. Any goroutine may call it.
func (m *Member) Leave() {
	m.Drain()
	if own := m.Own(); own != nil {
		own.sock.CloseWrite()
		return
	}
	m.Abandon()
}

// Abandon makes Wait and Send return, and closes the member's own connection without TLS's closing
// message, because the client is cut off. Any goroutine may call it.
func (m *Member) Abandon() {
	if own := m.Own(); own != nil {
		own.sock.Abandon()
		return
	}
	m.gone.Store(true)
	m.fail()
}

// Look gives up a server that has been silent for too long, once no more commands will come. It returns the
// time for which the server of the member's own connection has read no commands. The sweep calls it.
func (m *Member) Look(now time.Time) (stalled time.Duration) {
	c := m.conn.Load()
	if c == nil {
		return 0
	}
	if since := m.drains.Load(); since != 0 && min(c.sock.Quiet(now), now.Sub(began)-time.Duration(since)) > drainSilence {
		m.Abandon()
	}
	if c.only == nil {
		return 0
	}
	return c.sock.Stalled(now)
}

// Finish gives the client its last replies. On its own connection the upstream learns that no more
// commands will come, and then ends it. whole is false if the last value was cut off.
func (m *Member) Finish() (whole bool) {
	own := m.Own()
	if own == nil {
		m.Drain()
		_, whole = m.Wait()
		return whole
	}
	m.Leave()
	m.awaitEnd(own)
	return !own.inside
}

// CloseOwn is Finish, and the member may then open or join another connection.
func (m *Member) CloseOwn() (whole bool) {
	if m.Own() == nil {
		_, whole = m.Wait()
		return whole
	}
	drained := m.drains.Load()
	if whole = m.Finish(); whole {
		m.conn.Store(nil)
		m.failed.Store(false)
		m.drains.Store(drained)
		m.pending.Store(0)
	}
	return whole
}

func (m *Member) awaitEnd(own *Conn) {
	for !own.ended.Load() {
		m.task.Park()
	}
}

// ClosesAtOnce tells whether Close cuts off nothing.
func (m *Member) ClosesAtOnce() bool {
	own := m.Own()
	return m.Drained() && (own == nil || !own.Pipe())
}

// Close leaves everything. After it nothing is written to the client. The client's socket must have
// been closed.
func (m *Member) Close() {
	if own := m.Own(); own != nil {
		own.sock.Close()
		m.awaitEnd(own)
	} else {
		m.leaveShared()
		m.Abandon()
	}
	m.release()
}
