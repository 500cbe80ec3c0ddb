package pubsub

import (
	"bytes"
	"slices"

	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock/resp"
)

// A client that tracks with NOLOOP wants no invalidation for its own changes. A holder
// that gets one for its own extension would extend again and again. But the masters do
// not say who changed a key. So the listener makes a self-change check if the client's
// last command may have changed the key: it reads the key.
//
//   - If the key holds one of the values in that command's arguments, the client is
//     still the holder and gets no invalidation.
//   - Otherwise the client gets one, perhaps once too often.
//
// Every change leads to another check. So a change by another client is never hidden,
// unless the key has the same value after it. If another client changes only how long
// the lock lives, the holder is told when the lock ends.

// ownCommand holds the values in the arguments of a client's last command on a key.
// Values are secrets: they are compared, and never used for anything else.
type ownCommand struct {
	db     int
	values [][]byte
}

const (
	// ownValueLeast is the least length of a value that identifies a client. Clients may
	// share shorter ones, such as "1".
	ownValueLeast = 16
	// ownValuesMost bounds the bytes of the values that are kept of one command.
	ownValuesMost = 1024
)

// newOwnCommand keeps the values that the commands may store. It returns nil if none of
// them identifies this client.
func newOwnCommand(commands []lock.Command) *ownCommand {
	var values [][]byte
	db, size := 0, 0
	for _, call := range commands {
		db = call.DB
		for i, arg := range call.Args {
			isText := i == 1 && call.Route.Spec.Is(route.Script)
			if i == 0 || isText || len(arg) < ownValueLeast || slices.Contains(call.Route.Keys, i) {
				continue
			}
			if size += len(arg); size > ownValuesMost {
				return nil
			}
			values = append(values, bytes.Clone(arg))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return &ownCommand{db: db, values: values}
}

// didNothing recognises the replies by which most commands say that they changed nothing.
// A few say the opposite by one of them, as Redisson's scripts by nil. Their clients get
// an invalidation too many.
func didNothing(reply []byte) bool {
	switch string(reply) {
	case "$-1\r\n", "*-1\r\n", "_\r\n", ":0\r\n", "#f\r\n":
		return true
	}
	return resp.IsError(reply)
}

// check has a goroutine make a self-change check of a key. The caller holds the client's write lock.
func (l *Listener) check(key string, entry *trackedKey) {
	if entry.unchecked {
		return
	}
	t := l.tracked
	entry.unchecked = true
	t.unchecked = append(t.unchecked, key)
	if !t.checking {
		t.checking = true
		l.checks.Go(func() { l.makeChecks(t) })
	}
}

// makeChecks makes self-change checks until none is left.
func (l *Listener) makeChecks(t *trackedKeys) {
	defer func() {
		if reason := recover(); reason != nil {
			l.session.Panicked(reason)
		}
	}()
	for key, db, more := l.nextCheck(t); more; key, db, more = l.nextCheck(t) {
		value, _ := resp.ParseBulk(l.peek(l.ctx, db, key))
		l.checked(key, value)
	}
}

// nextCheck returns a key to be checked, and its database. A change after this call leads to another check.
func (l *Listener) nextCheck(t *trackedKeys) (key string, db int, more bool) {
	l.out.Lock()
	defer l.unlock()
	for l.tracked == t && len(t.unchecked) > 0 {
		key, t.unchecked = t.unchecked[0], t.unchecked[1:]
		entry := t.keys[key]
		if entry != nil {
			if entry.unchecked = false; entry.own != nil && !entry.busy {
				return key, entry.own.db, true
			}
		}
		l.onChange([]byte(key)) // there is nothing to compare with any more
	}
	t.checking = false
	return "", 0, false
}

// checked invalidates a key with this value, unless the client itself has stored that.
func (l *Listener) checked(key string, value []byte) {
	l.out.Lock()
	defer l.unlock()
	if l.tracked == nil {
		return
	}
	if entry := l.tracked.keys[key]; entry != nil && !entry.busy {
		if entry.own.stored(value) {
			return
		}
		entry.own = nil
	}
	l.onChange([]byte(key))
}

// stored tells whether value is one of the command's. It returns false if c is nil.
func (c *ownCommand) stored(value []byte) bool {
	return c != nil && slices.ContainsFunc(c.values, func(mine []byte) bool { return bytes.Equal(mine, value) })
}
