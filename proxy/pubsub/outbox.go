package pubsub

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
)

// writeBatch is roughly the number of bytes that one write sends.
const writeBatch = 64 << 10

// item is one item in the outbox: a push to the client, or a task for the goroutine
// that writes the outbox.
type item struct {
	kind  itemKind
	parts [][]byte // all in one allocation, which only the item uses
}

type itemKind uint8

// The kinds of items, and their parts. Those from itemSelfCheck on are tasks.
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

// writeOutbox writes the outbox until Close.
func (l *listener) writeOutbox() {
	defer close(l.done)
	defer func() {
		if reason := recover(); reason != nil {
			l.host.Panicked(reason)
		}
	}()
	for range l.delivery {
		for items := l.takeOutbox(); len(items) > 0; items = l.takeOutbox() {
			if !l.deliver(items) {
				return
			}
		}
	}
}

func (l *listener) takeOutbox() []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	items := l.outbox
	l.outbox = nil
	return items
}

// deliver writes items and carries out the tasks between them. It returns false if
// the session ends and nothing more may be written.
func (l *listener) deliver(items []item) bool {
	for len(items) > 0 {
		n := 0
		for n < len(items) && items[n].kind < itemSelfCheck {
			n++
		}
		if !l.write(items[:n]) {
			return false
		}
		items = items[n:]
		if len(items) == 0 {
			break
		}
		switch items[0].kind {
		case itemGap:
			l.host.MissedMessages("too few masters were listened to")
			return false
		case itemSelfCheck:
			l.checkSelfChange(string(items[0].parts[0]))
		}
		l.written(items[:1])
		items = items[1:]
	}
	return true
}

// write writes items to the client, between two values of other writers. It leaves
// out those that the client no longer wants. It returns false if a write fails.
func (l *listener) write(items []item) bool {
	if len(items) == 0 {
		return true
	}
	defer l.written(items)
	l.out.Lock()
	defer l.out.Unlock()
	if l.host.InPipe() {
		return true // the ends of values are not known
	}
	var text []byte
	messages, invalidations := 0, 0
	for i, n := range items {
		if l.wanted(n) {
			if text = n.append(text, l.version); n.kind < itemInvalidation {
				messages++
			} else {
				invalidations++
			}
		}
		if len(text) < writeBatch && i < len(items)-1 || len(text) == 0 {
			continue
		}
		if _, err := l.out.Write(text); err != nil {
			l.host.ClientLeft()
			return false
		}
		text = text[:0]
	}
	l.host.Delivered(messages, invalidations)
	return true
}

// wanted tells whether the client may get an item. For a message the subscription must
// be confirmed. An invalidation needs RESP3, because RESP2 has no form for it. The
// caller holds the client's write lock.
func (l *listener) wanted(n item) bool {
	switch n.kind {
	case itemMessage, itemPatternMessage:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.names[n.family()][string(n.parts[0])]
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
func (l *listener) written(items []item) {
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
