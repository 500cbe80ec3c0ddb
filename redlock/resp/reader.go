package resp

import "io"

// maxIdleBuffer is the size of the buffer that an empty Reader keeps, in bytes.
const maxIdleBuffer = 256 << 10

// A Reader collects whole replies from a connection in one buffer.
type Reader struct {
	in      io.Reader
	most    int    // the most bytes that may be held
	buf     []byte // bytes that were read
	start   int    // where the bytes still in use begin in buf
	pos     int    // where the scanner goes on in buf
	scanner Scanner
	ends    []int
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

// Wait returns once a byte of the next reply is there. False without an error means
// that there is none yet.
func (r *Reader) Wait() (bool, error) {
	if r.pos < len(r.buf) {
		return true, nil
	}
	if r.start == r.pos {
		if cap(r.buf) > maxIdleBuffer {
			r.buf = make([]byte, 0, 16<<10)
		}
		r.buf, r.start, r.pos = r.buf[:0], 0, 0
	}
	err := r.fill()
	return err == nil && r.pos < len(r.buf), err
}

// Fetch reads the next n whole top-level replies and holds them together with those
// held already.
func (r *Reader) Fetch(n int) error {
	for n += len(r.ends); len(r.ends) < n; {
		if r.pos == len(r.buf) {
			if err := r.fill(); err != nil {
				return err
			}
			continue
		}
		used, done, err := r.scanner.Scan(r.buf[r.pos:])
		if err != nil {
			return err
		}
		r.pos += used
		if done {
			r.ends = append(r.ends, r.pos)
		}
	}
	return nil
}

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

// Discard drops the held replies.
func (r *Reader) Discard() {
	r.start = r.pos
	r.ends = r.ends[:0]
}

// fill reads once, moving or growing the buffer when it is full.
func (r *Reader) fill() error {
	if len(r.buf) == cap(r.buf) {
		kept := r.buf[r.start:]
		if len(kept) >= r.most {
			return errTooLong
		}
		if r.start > cap(r.buf)/2 {
			r.buf = r.buf[:copy(r.buf, kept)]
		} else {
			grown := make([]byte, len(kept), 2*cap(r.buf))
			copy(grown, kept)
			r.buf = grown
		}
		for i := range r.ends {
			r.ends[i] -= r.start
		}
		r.pos -= r.start
		r.start = 0
	}
	n, err := r.in.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}
