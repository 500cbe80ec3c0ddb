package pubsub

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
)

// mailBatch is how many bytes of mail are written at once, roughly.
const mailBatch = 64 << 10

// notice is one piece of mail for a client.
type notice struct {
	kind  noticeKind
	parts [][]byte // of one allocation of its own
}

type noticeKind uint8

const (
	noticeMessage        noticeKind = iota // channel, payload
	noticePatternMessage                   // pattern, channel, payload
	noticeInvalid                          // keys
	noticeAllInvalid                       // -
	noticeDoubt                            // a key that may have been changed by the client itself
	noticeGap                              // messages may have been missed
)

func newNotice(kind noticeKind, parts ...[]byte) notice {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	text := make([]byte, 0, length)
	n := notice{kind: kind, parts: make([][]byte, len(parts))}
	for i, part := range parts {
		from := len(text)
		text = append(text, part...)
		n.parts[i] = text[from:len(text):len(text)]
	}
	return n
}

func (n notice) size() int {
	size := mailOverhead
	for _, part := range n.parts {
		size += len(part)
	}
	return size
}

// append writes the notice as Redis would have sent it.
func (n notice) append(dst []byte, version wire.Version) []byte {
	switch n.kind {
	case noticeMessage:
		dst = wire.AppendPushHeader(dst, 3, version)
		dst = redcon.AppendBulkString(dst, "message")
	case noticePatternMessage:
		dst = wire.AppendPushHeader(dst, 4, version)
		dst = redcon.AppendBulkString(dst, "pmessage")
	case noticeInvalid:
		dst = wire.AppendPushHeader(dst, 2, version)
		dst = redcon.AppendBulkString(dst, "invalidate")
		dst = redcon.AppendArray(dst, len(n.parts))
	case noticeAllInvalid:
		dst = wire.AppendPushHeader(dst, 2, version)
		dst = redcon.AppendBulkString(dst, "invalidate")
		return wire.AppendNull(dst, version)
	}
	for _, part := range n.parts {
		dst = redcon.AppendBulk(dst, part)
	}
	return dst
}

// deliverMail writes what is posted until close.
func (l *Listener) deliverMail() {
	defer close(l.done)
	defer func() {
		if reason := recover(); reason != nil {
			l.host.Panicked(reason)
		}
	}()
	for range l.delivery {
		for mail := l.takeMail(); len(mail) > 0; mail = l.takeMail() {
			if !l.deliver(mail) {
				return
			}
		}
	}
}

func (l *Listener) takeMail() []notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	mail := l.mail
	l.mail = nil
	return mail
}

// deliver reports false when nothing more is to be delivered.
func (l *Listener) deliver(mail []notice) bool {
	for len(mail) > 0 {
		n := 0
		for n < len(mail) && mail[n].kind < noticeDoubt {
			n++
		}
		if !l.write(mail[:n]) {
			return false
		}
		mail = mail[n:]
		if len(mail) == 0 {
			break
		}
		switch mail[0].kind {
		case noticeGap:
			l.host.MissedMessages()
			return false
		case noticeDoubt:
			l.settleDoubt(string(mail[0].parts[0]))
		}
		l.written(mail[:1])
		mail = mail[1:]
	}
	return true
}

// write hands notices to the client between two values of other writers, those
// that it still wants by then.
func (l *Listener) write(mail []notice) bool {
	if len(mail) == 0 {
		return true
	}
	defer l.written(mail)
	l.out.Lock()
	defer l.out.Unlock()
	if l.host.InPipe() {
		return true // nobody can tell where values end
	}
	var text []byte
	messages, invalidations := 0, 0
	for i, n := range mail {
		if l.wanted(n) {
			if text = n.append(text, l.version); n.kind < noticeInvalid {
				messages++
			} else {
				invalidations++
			}
		}
		if len(text) < mailBatch && i < len(mail)-1 || len(text) == 0 {
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

// wanted: the client has seen a subscription confirmed, or can be told of
// changed keys, which RESP2 has no words for. The caller holds the client's
// writing side.
func (l *Listener) wanted(n notice) bool {
	switch n.kind {
	case noticeMessage, noticePatternMessage:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.names[n.family()][string(n.parts[0])]
	}
	return l.version == wire.RESP3
}

func (n notice) family() wire.Family {
	if n.kind == noticePatternMessage {
		return wire.FamilyPattern
	}
	return wire.FamilyChannel
}

// written gives back what the notices took of the mail's limit.
func (l *Listener) written(mail []notice) {
	size := 0
	for _, n := range mail {
		size += n.size()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.waiting -= size
		l.memory.Release(size)
	}
}
