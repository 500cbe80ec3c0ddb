package resp

import "bytes"

const (
	// maxNesting is how deep a reply may nest. Redis itself stays below 10; Lua
	// tables, its deepest source, end with Lua's own stack, just below 8,000.
	maxNesting = 8192
	// usualNesting is the depth for which a Scanner keeps its memory between values.
	usualNesting = 128
	// maxLine bounds a simple line, in bytes. It is generous because a script's
	// error_reply is one line and may be as long as any Lua string.
	maxLine = 512 << 20
	// maxDigits keeps every length, twice a length (maps), and a length plus
	// its line end inside an int64.
	maxDigits = 18
	// shortestValue is the length of the shortest value, in bytes.
	shortestValue = 3
)

// A MalformedError reports a reply that no Redis sends. The server is broken, or is no
// Redis.
type MalformedError string

func (m MalformedError) Error() string { return "malformed reply: " + string(m) }

const (
	errType      MalformedError = "unknown type byte"
	errLength    MalformedError = "bad length"
	errLine      MalformedError = "line too long"
	errBulkEnd   MalformedError = "bulk without line end"
	errNesting   MalformedError = "nested too deep"
	errTooLong   MalformedError = "longer than may be"
	errAggregate MalformedError = "not one whole aggregate"

	// ErrUnasked reports a reply when none was expected.
	ErrUnasked MalformedError = "nothing was asked"
)

// A Scanner finds where the top-level RESP2 and RESP3 values of a byte stream end. It
// does not collect them: its memory does not grow with the input, and the input may be
// cut anywhere. It checks framing only, not the content of a simple line (a number, a
// boolean). The zero Scanner stands at the beginning of a value. It is not safe for
// concurrent use.
type Scanner struct {
	// MaxBytes bounds each top-level value with its attributes, both in the bytes that
	// come and in those it announces. 0 means no bound. Set it before use.
	MaxBytes int64
	// RESP2 rejects the types of RESP3, for callers that do not know them. Set it before
	// use.
	RESP2 bool
	// PushCounts makes a push inside an aggregate one of its elements, as EXEC's reply has
	// it for a SUBSCRIBE in the transaction. Set it between values.
	PushCounts bool

	err    error
	open   []openAggregate // outermost first; usual capacity is kept from value to value
	seen   int64           // bytes of the current top-level value in earlier calls
	due    int64           // the least number of elements still to come in it
	left   int64           // scanBulk: payload bytes to skip; scanLine: bytes the line may still have
	length int64           // scanLength: the number so far
	state  scanState
	kind   byte
	of     byte // type byte of the value or header being read
	digits uint8
	minus  bool
	lastCR bool // scanLine: the byte before was \r
	begun  bool // bytes of the current top-level value were seen
}

type openAggregate struct {
	left   int64 // elements still to come
	counts bool  // it is an element of the aggregate around it
}

type scanState uint8

const (
	scanType scanState = iota
	scanLine
	scanLength
	scanLengthLF
	scanBulk
	scanBulkCR
	scanBulkLF
)

// Kind is the type byte of the current top-level value, without its attributes. Until
// the next byte is scanned, it is that of the value that just ended. It is 0 before the
// first type byte.
func (s *Scanner) Kind() byte { return s.kind }

// Scan looks at p, the next bytes of the stream. It returns how many of them
// belong to the current top-level value and whether that value ends there;
// n < len(p) only if done. An attribute (|) belongs to the value after it, and
// a push (>) inside an aggregate is not one of its elements. An error means the
// stream is out of step for good, and every later call returns it again.
func (s *Scanner) Scan(p []byte) (n int, done bool, err error) {
	if s.err != nil {
		return 0, false, s.err
	}
	if len(p) > 0 && !s.begun {
		s.begun, s.kind = true, 0
	}
	for n < len(p) {
		ended := false // the innermost value ends with the byte before p[n]
		switch s.state {
		case scanType:
			err = s.startValue(p[n])
			n++
		case scanLine:
			var m int
			m, ended, err = s.skipLine(p[n:])
			n += m
		case scanLength:
			err = s.lengthByte(p[n])
			n++
		case scanLengthLF:
			if p[n] != '\n' {
				err = errLength
				break
			}
			n++
			ended, err = s.endLength(int64(n))
		case scanBulk:
			m := min(s.left, int64(len(p)-n))
			n += int(m)
			if s.left -= m; s.left == 0 {
				s.state = scanBulkCR
			}
		case scanBulkCR:
			if p[n] != '\r' {
				err = errBulkEnd
			}
			s.state = scanBulkLF
			n++
		case scanBulkLF:
			if p[n] != '\n' {
				err = errBulkEnd
			}
			ended = true
			n++
		}
		if err != nil {
			s.err = err
			return n, false, err
		}
		if ended {
			s.state = scanType
			if s.endValue(s.counts()) {
				done = true
				break
			}
		}
	}
	if s.seen += int64(n); s.MaxBytes > 0 && s.seen > s.MaxBytes {
		s.err = errTooLong
		return n, false, s.err
	}
	if done {
		s.begun, s.seen = false, 0
	}
	return n, done, nil
}

// counts tells whether the value being read is an element of the aggregate around it.
func (s *Scanner) counts() bool { return s.of != '|' && (s.of != '>' || s.PushCounts) }

func (s *Scanner) startValue(of byte) error {
	s.of = of
	if len(s.open) == 0 && of != '|' {
		s.kind = of
	}
	if s.RESP2 && bytes.IndexByte([]byte("+-:$*"), of) < 0 {
		return errType
	}
	switch of {
	case '+', '-', ':', '_', '#', ',', '(':
		s.state, s.left, s.lastCR = scanLine, maxLine, false
	case '$', '*', '=', '!', '~', '%', '>', '|':
		s.state, s.length, s.digits, s.minus = scanLength, 0, 0, false
	default:
		return errType
	}
	return nil
}

func (s *Scanner) skipLine(p []byte) (n int, ended bool, err error) {
	for n < len(p) {
		i := bytes.IndexByte(p[n:], '\n')
		if i < 0 {
			s.lastCR = p[len(p)-1] == '\r'
			i = len(p) - n - 1
		} else {
			ended = i > 0 && p[n+i-1] == '\r' || i == 0 && s.lastCR
			s.lastCR = false
		}
		n += i + 1
		if s.left -= int64(i + 1); s.left < 0 {
			return n, false, errLine
		}
		if ended {
			return n, true, nil
		}
	}
	return n, false, nil
}

func (s *Scanner) lengthByte(b byte) error {
	switch {
	case b >= '0' && b <= '9' && s.digits < maxDigits:
		s.length = s.length*10 + int64(b-'0')
		s.digits++
	case b == '-' && s.digits == 0 && !s.minus:
		s.minus = true
	case b == '\r' && s.digits > 0:
		s.state = scanLengthLF
	default:
		return errLength
	}
	return nil
}

// endLength acts on a whole length, n bytes into the scanned bytes. It reports whether
// the value has no more bytes. Only RESP2's two null forms have a negative length.
func (s *Scanner) endLength(n int64) (ended bool, err error) {
	if s.minus {
		if s.length != 1 || s.of != '$' && s.of != '*' {
			return false, errLength
		}
		return true, nil
	}
	switch s.of {
	case '$', '=', '!':
		if !s.mayFollow(n, s.length) {
			return false, errTooLong
		}
		s.left, s.state = s.length, scanBulk
		if s.left == 0 {
			s.state = scanBulkCR
		}
		return false, nil
	case '%', '|':
		s.length *= 2
	}
	if s.length == 0 {
		return true, nil
	}
	if len(s.open) == maxNesting {
		return false, errNesting
	}
	if !s.mayFollow(n, s.length*shortestValue) {
		return false, errTooLong
	}
	s.due += s.length
	s.open = append(s.open, openAggregate{left: s.length, counts: s.counts()})
	s.state = scanType
	return false, nil
}

// mayFollow tells whether so many more bytes, together with all that are announced
// already, stay within the bound.
func (s *Scanner) mayFollow(n, more int64) bool {
	return s.MaxBytes == 0 || more <= s.MaxBytes-s.seen-n-s.due*shortestValue
}

// endValue closes a value and every aggregate whose last element it was. It reports
// whether the top-level value ended. An attribute never ends one. A push ends one if
// nothing is around it.
func (s *Scanner) endValue(counts bool) bool {
	for len(s.open) > 0 {
		if !counts {
			return false
		}
		top := &s.open[len(s.open)-1]
		s.due--
		if top.left--; top.left > 0 {
			return false
		}
		counts = top.counts
		s.open = s.open[:len(s.open)-1]
	}
	if cap(s.open) > usualNesting {
		s.open = nil
	}
	return s.kind != 0
}
