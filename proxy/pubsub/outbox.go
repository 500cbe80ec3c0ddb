package pubsub

import (
	"log/slog"
	"sync/atomic"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// writeBatch is roughly the number of bytes that one write sends.
const writeBatch = 64 << 10

// item is one item in the outbox: a push to the client, or something to do between two.
type item struct {
	kind  itemKind
	parts [][]byte // all in one allocation, which only the item uses
}

type itemKind uint8

// The kinds of items, and their parts. Those from itemSelfCheck on are something to do.
const (
	itemMessage        itemKind = iota // channel, payload
	itemPatternMessage                 // pattern, channel, payload
	itemInvalidation                   // the changed keys
	itemInvalidateAll                  // none: any key may have changed
	itemSelfCheck                      // a key that the client itself may have changed
	itemGap                            // none: messages may be lost
)

func newItem(kind itemKind, parts ...[]byte) item {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	text := make([]byte, 0, length)
	n := item{kind: kind, parts: make([][]byte, len(parts))}
	for i, part := range parts {
		from := len(text)
		text = append(text, part...)
		n.parts[i] = text[from:len(text):len(text)]
	}
	return n
}

func (n item) size() int {
	size := itemOverhead
	for _, part := range n.parts {
		size += len(part)
	}
	return size
}

// append appends the item as Redis would send it.
func (n item) append(dst []byte, version wire.Version) []byte {
	switch n.kind {
	case itemMessage:
		dst = wire.AppendPushHeader(dst, 3, version)
		dst = redcon.AppendBulkString(dst, "message")
	case itemPatternMessage:
		dst = wire.AppendPushHeader(dst, 4, version)
		dst = redcon.AppendBulkString(dst, "pmessage")
	case itemInvalidation:
		dst = wire.AppendPushHeader(dst, 2, version)
		dst = redcon.AppendBulkString(dst, "invalidate")
		dst = redcon.AppendArray(dst, len(n.parts))
	case itemInvalidateAll:
		dst = wire.AppendPushHeader(dst, 2, version)
		dst = redcon.AppendBulkString(dst, "invalidate")
		return wire.AppendNull(dst, version)
	}
	for _, part := range n.parts {
		dst = redcon.AppendBulk(dst, part)
	}
	return dst
}

// writeOutbox writes the outbox. It is the turn of the listener's task, until Close.
func (l *Listener) writeOutbox(task *loop.Task) (rests bool) {
	defer func() {
		if reason := recover(); reason != nil {
			l.session.Panicked(reason)
		}
		if !rests {
			close(l.done)
		}
	}()
	task.Doing("messages of the masters")
	for items := l.takeOutbox(); len(items) > 0; items = l.takeOutbox() {
		if !l.deliver(task, items) {
			return false
		}
	}
	return !l.isClosed()
}

func (l *Listener) takeOutbox() []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	items := l.outbox
	l.outbox = nil
	return items
}

func (l *Listener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// deliver writes items and does what is to be done between them. It returns false if
// the session ends and nothing more may be written.
func (l *Listener) deliver(task *loop.Task, items []item) bool {
	for len(items) > 0 {
		n, ok := 1, true
		switch items[0].kind {
		case itemGap:
			l.Missed("too few masters were listened to")
			ok = false
		case itemSelfCheck:
			task.Leave() // it asks the masters
			l.checkSelfChange(string(items[0].parts[0]))
		default:
			n, ok = l.write(task, items)
			l.awaitRoom(task)
		}
		l.written(items[:n])
		if !ok {
			return false
		}
		items = items[n:]
	}
	return true
}

// write writes the first items to the client, between two values of other writers, and returns their
// number. It leaves out those that the client no longer wants. ok is false if the connection is over.
func (l *Listener) write(task *loop.Task, items []item) (n int, ok bool) {
	l.out.Lock()
	defer l.out.Unlock()
	var text []byte
	messages, invalidations := 0, 0
	for n < len(items) && items[n].kind < itemSelfCheck && len(text) < writeBatch {
		item := items[n]
		if n++; l.session.InPipe() || !l.wanted(item) { // in a pipe the ends of values are not known
			continue
		}
		if text = item.append(text, l.version); item.kind < itemInvalidation {
			messages++
		} else {
			invalidations++
		}
	}
	if len(text) == 0 {
		return n, true
	}
	if err := l.out.Append(text); err != nil {
		l.session.ClientLeft()
		return n, false
	}
	l.session.Env.Metrics.WokenUp(messages, invalidations)
	return n, true
}

// awaitRoom returns when the client takes more, or never will.
func (l *Listener) awaitRoom(task *loop.Task) {
	var room atomic.Bool
	if !l.out.WhenRoom(func() { room.Store(true); task.Unpark() }) {
		return
	}
	for !room.Load() && !l.isClosed() {
		task.Park()
	}
}

// Missed ends the session after the commands that it has received, because its client may have missed
// messages. Any goroutine may call it.
func (l *Listener) Missed(reason string) {
	l.session.End(session.MissedMessages, slog.String("reason", reason))
}

// wanted tells whether the client may get an item. For a message the subscription must
// be confirmed. An invalidation needs RESP3, because RESP2 has no form for it. The
// caller holds the client's write lock.
func (l *Listener) wanted(n item) bool {
	switch n.kind {
	case itemMessage, itemPatternMessage:
		_, confirmed := l.Wanted(n.family(), string(n.parts[0]))
		return confirmed
	}
	return l.version == wire.RESP3
}

func (n item) family() wire.Family {
	if n.kind == itemPatternMessage {
		return wire.FamilyPattern
	}
	return wire.FamilyChannel
}

// written gives back the memory of items. They no longer count for the output limit.
func (l *Listener) written(items []item) {
	size := 0
	for _, n := range items {
		size += n.size()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.waiting -= size
		l.memory.Release(size)
	}
}
