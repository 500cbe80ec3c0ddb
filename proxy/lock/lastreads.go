package lock

import "bytes"

const (
	lastReads        = 8    // reads that a session remembers
	lastReadMaxBytes = 1024 // for a key and its value together; timestamps and tokens are far smaller
)

// LastReads remembers the values that GET and MGET last returned to one session, for a
// few lock keys. The lock on Redis's old SETNX page reads a timestamp and then takes
// over with GETSET, expecting the timestamp it has read. So the lock plane must know
// which answer tells that client that it has won. It is not safe for concurrent
// use and never grows beyond a few entries. The zero value is empty. A nil LastReads
// remembers nothing.
type LastReads struct {
	reads []lockRead
	next  int // the entry to overwrite next, once all are in use
}

type lockRead struct {
	db         int
	key, value []byte
}

// Remember keeps a copy of the value that was read from key. A nil value means that the
// key was absent, so Remember forgets its entry.
func (r *LastReads) Remember(db int, key, value []byte) {
	entry := r.find(db, key)
	switch {
	case r == nil:
		return
	case value == nil || len(key)+len(value) > lastReadMaxBytes:
		if entry != nil {
			*entry = lockRead{}
		}
		return
	case entry == nil && len(r.reads) < lastReads:
		r.reads = append(r.reads, lockRead{})
		entry = &r.reads[len(r.reads)-1]
	case entry == nil:
		entry = &r.reads[r.next]
		r.next = (r.next + 1) % lastReads
	}
	entry.db = db
	entry.key = append(entry.key[:0], key...)
	if entry.value == nil {
		entry.value = make([]byte, 0, len(value)) // an empty value must not become nil
	}
	entry.value = append(entry.value[:0], value...)
}

// Take returns the value that was last read from key, or nil if none is known. It
// forgets the value, because the session does not expect it after its swap. The caller
// owns the value.
func (r *LastReads) Take(db int, key []byte) []byte {
	entry := r.find(db, key)
	if entry == nil {
		return nil
	}
	value := entry.value
	*entry = lockRead{}
	return value
}

// find returns the entry of a key, or nil if there is none.
func (r *LastReads) find(db int, key []byte) *lockRead {
	if r == nil {
		return nil
	}
	for i := range r.reads {
		if read := &r.reads[i]; read.value != nil && read.db == db && bytes.Equal(read.key, key) {
			return read
		}
	}
	return nil
}
