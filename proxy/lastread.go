package proxy

import "bytes"

const (
	lastReads        = 8    // how many reads a session remembers
	lastReadMaxBytes = 1024 // of a key and its value together; timestamps and tokens are far smaller
)

// lastRead is a session's memory of what GET and MGET last told it of a few
// lock keys. The lock of the old SETNX page reads a timestamp and then takes
// over with GETSET, expecting the timestamp it has read; the lock plane must
// know which answer would tell that caller that it has won. It belongs to one
// session, is not safe for concurrent use, and never grows beyond a few
// entries. The zero value is empty; a nil one remembers nothing.
type lastRead struct {
	reads []lockRead
	next  int // the entry that is overwritten next once all are in use
}

type lockRead struct {
	db         int
	key, value []byte
}

// remember keeps a copy of what key was read to hold; a nil value means it
// was absent, which nothing needs to be remembered of.
func (r *lastRead) remember(db int, key, value []byte) {
	if r == nil {
		return
	}
	i := r.find(db, key)
	if value == nil || len(key)+len(value) > lastReadMaxBytes {
		if i >= 0 {
			r.reads[i] = lockRead{}
		}
		return
	}
	if i < 0 {
		if len(r.reads) < lastReads {
			r.reads = append(r.reads, lockRead{})
			i = len(r.reads) - 1
		} else {
			i = r.next
			r.next = (r.next + 1) % lastReads
		}
	}
	entry := &r.reads[i]
	entry.db = db
	entry.key = append(entry.key[:0], key...)
	if entry.value == nil {
		entry.value = make([]byte, 0, len(value)) // the empty value is one too
	}
	entry.value = append(entry.value[:0], value...)
}

// take returns what key was last read to hold, nil if that is not known, and
// forgets it: after the swap it is no longer what the caller goes by. The
// caller owns the value.
func (r *lastRead) take(db int, key []byte) []byte {
	if r == nil {
		return nil
	}
	i := r.find(db, key)
	if i < 0 {
		return nil
	}
	value := r.reads[i].value
	r.reads[i] = lockRead{}
	return value
}

func (r *lastRead) find(db int, key []byte) int {
	for i, read := range r.reads {
		if read.value != nil && read.db == db && bytes.Equal(read.key, key) {
			return i
		}
	}
	return -1
}
