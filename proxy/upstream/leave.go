package upstream

import "time"

// This file is how a member ends: with its client, or with its own connection.

// Drain says that the client sends no more. It gets what comes soon. Any goroutine may call it.
func (m *Member) Drain() {
	m.drains.Store(true)
	if own := m.Own(); own != nil {
		own.startDrain()
	} else if m.conn.Load() != nil {
		m.abandonAfter(drainSilence)
	}
}

// Leave says that the client has gone. A command that still blocks at the upstream could swallow an
// element, so the upstream is told. Any goroutine may call it.
func (m *Member) Leave() {
	if own := m.Own(); own != nil {
		own.closeWrite()
		return
	}
	m.abandon()
}

// Abandon makes Wait and Write return, and closes the member's own connection without TLS's closing
// message, because the client is cut off. Any goroutine may call it.
func (m *Member) Abandon() {
	if own := m.Own(); own != nil {
		own.sock.Abandon()
		return
	}
	m.abandon()
}

func (m *Member) abandon() {
	m.gone.Store(true)
	m.fail()
}

func (m *Member) abandonAfter(limit time.Duration) {
	if before := m.leaving.Swap(time.AfterFunc(limit, m.abandon)); before != nil {
		before.Stop()
	}
}

func (m *Member) stopLeaving() {
	if t := m.leaving.Swap(nil); t != nil {
		t.Stop()
	}
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
	own.closeWrite()
	m.awaitEnd(own)
	return !own.inside
}

// CloseOwn is Finish, and the member may then open or join another connection.
func (m *Member) CloseOwn() (whole bool) {
	if m.Own() == nil {
		_, whole = m.Wait()
		return whole
	}
	if whole = m.Finish(); whole {
		m.conn.Store(nil)
		m.failed.Store(false)
		m.pending.Store(0)
		m.broken = false
	}
	return whole
}

func (m *Member) awaitEnd(own *Conn) {
	for !own.ended.Load() {
		m.task.Park()
	}
}

// Close leaves everything. After it nothing is written to the client. The client's socket must have
// been closed.
func (m *Member) Close() {
	if own := m.Own(); own != nil {
		own.sock.Close()
		m.awaitEnd(own)
	} else {
		m.leaveShared()
		m.abandon()
	}
	m.release()
}

// Stalled is the time for which the server of the member's own connection has read no commands, or 0.
// Any goroutine may ask.
func (m *Member) Stalled() time.Duration {
	if own := m.Own(); own != nil {
		return own.sock.Stalled()
	}
	return 0
}
