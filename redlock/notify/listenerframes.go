package notify

import (
	"time"

	"redlock-proxy/redlock/resp"
)

// This file handles what a master sends on a listener's connection. Answers come in the
// order of the questions. Between them come messages and changed keys.

// hear handles one frame. An error means that the frames do not match our questions.
func (r *listener) hear(frame []byte, now time.Time) error {
	switch frame[0] {
	case '>', '*':
	case '-', '!':
		return r.refused(frame)
	default:
		return r.answered("", now)
	}
	parts, err := resp.Elements(frame)
	if err != nil {
		return err
	}
	text := func(i int) string {
		if i >= len(parts) {
			return ""
		}
		b, _ := resp.ParseBulk(parts[i])
		return string(b)
	}
	switch kind := text(0); {
	case kind == "pmessage" && len(parts) == 4:
		r.hub.published(message{channel: text(2), payload: text(3)}, r, now)
	case kind == "invalidate" && len(parts) == 2:
		return r.invalidated(parts[1], now)
	case kind == "pong" && len(parts) == 2:
		return r.answered("ping", now)
	case (kind == "psubscribe" || kind == "punsubscribe") && len(parts) == 3:
		return r.answered(kind, now)
	case frame[0] != '>':
		return errAnswer
	}
	return nil
}

// invalidated handles a list of changed keys. A nil list means that any key may have
// changed.
func (r *listener) invalidated(list []byte, now time.Time) error {
	if resp.IsNil(list) {
		r.hub.keysChanged(nil, r, now)
		return nil
	}
	parts, err := resp.Elements(list)
	if err != nil {
		return err
	}
	keys := parts[:0]
	for _, part := range parts {
		if key, ok := resp.ParseBulk(part); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		r.hub.keysChanged(keys, r, now)
	}
	return nil
}

// answered removes the oldest expectation. Its verb must match. A plain reply has no verb,
// and answers PING and CLIENT TRACKING.
func (r *listener) answered(verb string, now time.Time) error {
	l := r.hub
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(r.expected) == 0 {
		return errAnswer
	}
	e := r.expected[0]
	switch expected := e.verb(); {
	case verb == "" && expected != "ping" && expected != "tracking":
		return errAnswer
	case verb != "" && verb != expected:
		return errAnswer
	}
	r.take(e)
	if e.feed != nil && !e.ends && r.current() {
		l.confirm(e.feed, r.number, now)
	}
	return nil
}

func (r *listener) take(e expectation) {
	r.expected = r.expected[1:]
	r.proof = e.sent
}

// refused removes the oldest expectation, which the master has refused.
func (r *listener) refused(reply []byte) error {
	l := r.hub
	l.mu.Lock()
	if len(r.expected) == 0 {
		l.mu.Unlock()
		return errAnswer // such as "max number of clients reached"
	}
	e := r.expected[0]
	r.take(e)
	if e.feed != nil && !e.ends && r.current() {
		l.refuse(e.feed, r.number)
	}
	l.mu.Unlock()
	if e.feed != nil { // a master that cannot save refuses a PING, and still tells all
		r.warn(e.verb(), reply)
	}
	return nil
}
