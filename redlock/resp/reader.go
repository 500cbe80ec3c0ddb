package resp

import (
	"io"
	"slices"
)

// maxIdleBuffer is the size of the buffer that an empty Reader keeps, in bytes.
const maxIdleBuffer = 256 << 10

// A Reader collects whole replies from a connection in one buffer. It reads the bytes
// itself, or its owner reads them and calls Feed.
type Reader struct {
	in      io.Reader
	most    int    // the most bytes that may be held
	longest int    // a longer reply is dropped; 0: it is an error
	buf     []byte // bytes that were read
	start   int    // where the bytes still in use begin in buf
	pos     int    // where the scanner goes on in buf
	scanner Scanner
	ends    []int
	drops   bool // the bytes of the current reply are dropped
}

// NewReader starts with a buffer of the given size, above 0. It holds at most most
// bytes at a time, whatever a broken server sends.
func NewReader(in io.Reader, size int, most int64) *Reader {
	r := &Reader{in: in, buf: make([]byte, 0, size)}
	r.SetLimit(most)
	return r
}

// SetLimit changes the most bytes that may be held.
func (r *Reader) SetLimit(most int64) { r.most, r.scanner.MaxBytes = int(most), most }

// DropLonger has the reader drop each longer reply as it comes, for which IsTooLong then
// stands. So it is no error, and no other reply suffers. Only a reply that is more than 64 times
// as long is one. The reader holds at most so many bytes at a time.
func (r *Reader) DropLonger(longest int64) {
	r.SetLimit(64 * longest)
	r.longest = int(longest)
}

// Pending tells whether bytes are there that belong to no held reply.
func (r *Reader) Pending() bool { return r.pos < len(r.buf) }

// Fetch reads the next n whole top-level replies and holds them together with those
// held already.
func (r *Reader) Fetch(n int) error {
	n += len(r.ends)
	for {
		if held, err := r.Hold(n); held || err != nil {
			return err
		}
		if err := r.Fill(); err != nil {
			return err
		}
	}
}

// Hold looks for whole replies among the bytes that are there, until it holds n. It tells
// whether it does.
func (r *Reader) Hold(n int) (bool, error) {
	for len(r.ends) < n && r.Pending() {
		used, done, err := r.scanner.Scan(r.buf[r.pos:])
		if err != nil {
			return false, err
		}
		r.pos += used
		if begin := r.begin(); r.drops || r.longest > 0 && r.pos-begin > r.longest {
			r.drop(begin, done)
		}
		if done {
			r.ends = append(r.ends, r.pos)
		}
	}
	return len(r.ends) >= n, nil
}

// begin is where the current reply begins in buf.
func (r *Reader) begin() int {
	if n := len(r.ends); n > 0 {
		return r.ends[n-1]
	}
	return r.start
}

// drop removes what is there of the current reply. If that is the rest of it, tooLong
// stands in its place.
func (r *Reader) drop(begin int, done bool) {
	var instead []byte
	if done {
		instead = tooLong
	}
	r.buf = slices.Replace(r.buf, begin, r.pos, instead...)
	r.pos, r.drops = begin+len(instead), !done
}

// Dropping tells whether a reply is being dropped whose end has not come, and how many replies
// before it are held.
func (r *Reader) Dropping() (held int, drops bool) { return len(r.ends), r.drops }

// Fetched appends the held replies to dst. They are slices of the reader's buffer,
// valid until the next Fetch or Discard.
func (r *Reader) Fetched(dst [][]byte) [][]byte {
	from := r.start
	for _, end := range r.ends {
		dst = append(dst, r.buf[from:end:end])
		from = end
	}
	return dst
}

// Next is Fetch and Fetched in one.
func (r *Reader) Next(dst [][]byte, n int) ([][]byte, error) {
	if err := r.Fetch(n); err != nil {
		return nil, err
	}
	return r.Fetched(dst), nil
}

// Held is the number of bytes of the held replies.
func (r *Reader) Held() int { return r.pos - r.start }

// Discard drops the held replies.
func (r *Reader) Discard() {
	r.start = r.pos
	r.ends = r.ends[:0]
}

// Fill reads once.
func (r *Reader) Fill() error {
	if err := r.makeRoom(1); err != nil {
		return err
	}
	n, err := r.in.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}

// Feed appends a copy of bytes that its owner read.
func (r *Reader) Feed(p []byte) error {
	if err := r.makeRoom(len(p)); err != nil {
		return err
	}
	r.buf = append(r.buf, p...)
	return nil
}

// makeRoom makes room for n bytes. It moves or grows a buffer that is too full.
func (r *Reader) makeRoom(n int) error {
	if r.start == len(r.buf) {
		if cap(r.buf) > maxIdleBuffer {
			r.buf = make([]byte, 0, 16<<10)
		}
		r.buf, r.start, r.pos = r.buf[:0], 0, 0
	}
	if cap(r.buf)-len(r.buf) >= n {
		return nil
	}
	kept := r.buf[r.start:]
	if len(kept) >= r.most {
		return errTooLong
	}
	if len(kept)+n <= cap(r.buf)/2 {
		r.buf = r.buf[:copy(r.buf, kept)]
	} else {
		grown := make([]byte, len(kept), max(2*cap(r.buf), len(kept)+n))
		copy(grown, kept)
		r.buf = grown
	}
	for i := range r.ends {
		r.ends[i] -= r.start
	}
	r.pos -= r.start
	r.start = 0
	return nil
}
