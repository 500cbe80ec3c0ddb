package wire

import (
	"bytes"
	"math"
	"strings"
	"unsafe"

	"redlock-proxy/redlock/resp"
)

// Limits bound the parts of one command. The owner of the buffer bounds the bytes held
// for an unfinished command.
type Limits struct {
	Bulk      int64 // the longest argument of a RESP array, in bytes
	Multibulk int   // the largest number of arguments of a RESP array
	Inline    int   // the longest inline command, and the longest line with a length, in bytes

	// The same limits before authentication.
	LoginMultibulk int
	LoginBulk      int64
}

// RedisLimits are the defaults of a Redis server.
var RedisLimits = Limits{
	Bulk: 512 << 20, Multibulk: math.MaxInt32, Inline: 64 << 10,
	LoginMultibulk: 10, LoginBulk: 16 << 10,
}

const (
	// maxBulkLimit bounds Limits.Bulk, so that the sum of a length and an offset fits
	// into an int64.
	maxBulkLimit = 1 << 60
	// maxKeptArgs is the number of argument slots that a Decoder may keep between
	// commands.
	maxKeptArgs = 1024
)

// Limit names one of Limits by its key in the configuration.
type Limit string

const (
	LimitBulk           Limit = "bulk"
	LimitMultibulk      Limit = "multibulk"
	LimitInline         Limit = "inline"
	LimitLoginMultibulk Limit = "login_multibulk"
	LimitLoginBulk      Limit = "login_bulk"
)

// ProtocolError says why a client's bytes are no command. The caller must close the
// connection after sending Text.
type ProtocolError struct {
	Text  Error // Redis's text
	Limit Limit // the limit that was exceeded; "" if the bytes are malformed
}

func (e ProtocolError) Error() string { return strings.TrimSuffix(string(e.Text[1:]), "\r\n") }

const (
	ErrBigInline        Error = "-ERR Protocol error: too big inline request\r\n"
	ErrQuotes           Error = "-ERR Protocol error: unbalanced quotes in request\r\n"
	ErrBigCount         Error = "-ERR Protocol error: too big mbulk count string\r\n"
	ErrCount            Error = "-ERR Protocol error: invalid multibulk length\r\n"
	ErrCountBeforeAuth  Error = "-ERR Protocol error: unauthenticated multibulk length\r\n"
	ErrBigLength        Error = "-ERR Protocol error: too big bulk count string\r\n"
	ErrLength           Error = "-ERR Protocol error: invalid bulk length\r\n"
	ErrLengthBeforeAuth Error = "-ERR Protocol error: unauthenticated bulk length\r\n"
)

// Command is one command of a client.
type Command struct {
	Raw  []byte   // a RESP array: the bytes as they arrived, or an array that says the same as an inline command
	Args [][]byte // at least one; parts of what arrived, or copies of quoted inline arguments
}

// CloneArgs returns a copy of the arguments, which outlives the command's bytes.
func (c Command) CloneArgs() [][]byte {
	args := make([][]byte, len(c.Args))
	for i, arg := range c.Args {
		args[i] = bytes.Clone(arg)
	}
	return args
}

// Decoder finds the commands in one client's input. It returns a command only if all
// of its bytes have arrived and all of its lengths are valid. It accepts what Redis
// accepts, including odd forms, and refuses what Redis refuses with the same text. So
// the bytes of an array can be forwarded unchanged.
type Decoder struct {
	limits        Limits
	authenticated bool
	args          [][]byte

	// Charge takes memory for the argument slots of a very long array from the
	// memory that all sessions share. A negative number of bytes gives memory back.
	// If Charge is nil, this memory is not bounded.
	Charge  func(bytes int) error
	charged int

	// How far the unfinished command was checked, as offsets from its first byte.
	at     int   // all before it is checked
	looked int   // at..looked holds no line end
	total  int   // the number of arguments of the array
	count  int   // the number of arguments still to read; 0 before the array's own line
	bulk   int64 // the length of the argument at at; -1 before its line was read
}

// NewDecoder returns a Decoder for a client that has not authenticated yet.
func NewDecoder(limits Limits) *Decoder {
	d := &Decoder{bulk: -1}
	d.SetLimits(limits)
	return d
}

// SetLimits changes the limits. They apply from the next length that is read.
func (d *Decoder) SetLimits(limits Limits) {
	limits.Bulk = min(limits.Bulk, maxBulkLimit)
	d.limits = limits
}

// SetAuthenticated switches the limits before authentication off or on. It applies
// from the next length that is read. So the caller must call it before it asks Next for
// the command after AUTH.
func (d *Decoder) SetAuthenticated(yes bool) { d.authenticated = yes }

// Next takes one complete command from the front of buf. It returns ok as false if the
// command is incomplete.
//
// n is the number of bytes that the caller must drop. It may be above 0 even if ok is
// false, because Redis ignores empty arrays and empty lines. The caller keeps buf[n:],
// appends more bytes and calls again. Next does not check the same bytes twice.
//
// need, if not 0, is the least length of buf[n:] once the command is complete. A client
// can claim any length up to the limits, so need is a hint for the size of a read. The
// caller must not allocate that much.
//
// err is a ProtocolError or the error of Charge. Both end the session. cmd is valid
// until the next call, and its Args only as long as buf.
func (d *Decoder) Next(buf []byte) (cmd Command, n int, ok bool, need int, err error) {
	d.ForgetArgs()
	for n < len(buf) {
		frame := buf[n:]
		array := frame[0] == '*'
		if array && d.at == 0 {
			if size := d.splitFast(frame); size > 0 {
				d.looked = 0
				return Command{Raw: frame[:size:size], Args: d.args}, n + size, true, 0, nil
			}
		}
		var size int
		if array {
			size, need, err = d.measureArray(frame)
		} else {
			size, err = d.measureLine(frame)
		}
		if size == 0 || err != nil {
			return Command{}, n, false, need, err
		}
		raw := frame[:size:size]
		if array {
			if err = d.makeRoom(); err != nil {
				return Command{}, n, false, 0, err
			}
			d.args = d.splitArray(raw)
		} else if d.args, err = splitInline(d.args, raw); err != nil {
			return Command{}, n, false, 0, err
		}
		d.at, d.looked = 0, 0
		n += size
		if len(d.args) == 0 {
			continue
		}
		if !array { // some servers, such as the embedded one, do not accept inline commands
			raw = resp.AppendCommand(nil, d.args...)
		}
		return Command{Raw: raw, Args: d.args}, n, true, 0, nil
	}
	return Command{}, n, false, 0, nil
}

// ForgetArgs drops the references to the last command, so that an idle session keeps
// neither its buffer nor a long list of arguments alive.
func (d *Decoder) ForgetArgs() {
	if cap(d.args) > maxKeptArgs {
		d.args = nil
		if d.Charge != nil {
			_ = d.Charge(-d.charged)
		}
		d.charged = 0
		return
	}
	clear(d.args)
	d.args = d.args[:0]
}

// makeRoom allocates slots for the arguments of a complete array, if it is long, and
// charges them: they may take more memory than the array's bytes.
func (d *Decoder) makeRoom() error {
	if d.total <= maxKeptArgs {
		return nil
	}
	size := d.total * int(unsafe.Sizeof(d.args[0]))
	if d.Charge != nil {
		if err := d.Charge(size); err != nil {
			return err
		}
	}
	d.charged = size
	d.args = make([][]byte, 0, d.total)
	return nil
}

// measureLine returns the length of the inline command at the front of frame, or 0
// while its line end is missing.
func (d *Decoder) measureLine(frame []byte) (size int, err error) {
	end, err := d.lineEnd(frame, '\n', ErrBigInline)
	if end < 0 {
		return 0, err
	}
	return end + 1, nil
}

// measureArray returns the length of the array at the front of frame, or 0 while parts
// of it are missing.
func (d *Decoder) measureArray(frame []byte) (size, need int, err error) {
	if d.count == 0 {
		count, found, err := d.number(frame, ErrBigCount)
		switch {
		case err != nil || !found:
			return 0, 0, err
		case !count.ok:
			return 0, 0, ProtocolError{Text: ErrCount}
		case count.value > int64(d.limits.Multibulk):
			return 0, 0, ProtocolError{ErrCount, LimitMultibulk}
		case count.value > int64(d.limits.LoginMultibulk) && !d.authenticated:
			return 0, 0, ProtocolError{ErrCountBeforeAuth, LimitLoginMultibulk}
		}
		d.pass(count.end)
		d.count = int(max(count.value, 0))
		d.total = d.count
	}
	for d.count > 0 {
		if d.bulk < 0 {
			length, found, err := d.number(frame, ErrBigLength)
			switch {
			case err != nil || !found:
				return 0, 0, err
			case frame[d.at] != '$':
				return 0, 0, expectedDollar(frame[d.at])
			case !length.ok || length.value < 0:
				return 0, 0, ProtocolError{Text: ErrLength}
			case length.value > d.limits.Bulk:
				return 0, 0, ProtocolError{ErrLength, LimitBulk}
			case length.value > d.limits.LoginBulk && !d.authenticated:
				return 0, 0, ProtocolError{ErrLengthBeforeAuth, LimitLoginBulk}
			}
			d.pass(length.end)
			d.bulk = length.value
		}
		if int64(len(frame)-d.at) < d.bulk+2 {
			return 0, d.at + int(d.bulk) + 2, nil
		}
		d.pass(d.at + int(d.bulk))
		d.bulk = -1
		d.count--
	}
	return d.at, 0, nil
}

type lineNumber struct {
	value int64
	ok    bool
	end   int // the offset of its \r
}

// number reads the line at d.at up to its \r, without the type byte. Like Redis, it
// does not read the line before the byte behind the \r has arrived.
func (d *Decoder) number(frame []byte, tooBig Error) (line lineNumber, found bool, err error) {
	end, err := d.lineEnd(frame, '\r', tooBig)
	if end < 0 || end+1 == len(frame) {
		return lineNumber{}, false, err
	}
	// An empty line has no type byte; the caller detects that.
	value, ok := resp.ParseDecimal(frame[min(d.at+1, end):end])
	return lineNumber{value: value, ok: ok, end: end}, true, nil
}

// lineEnd returns the offset of the byte that ends the line at d.at, or -1 while it is
// missing. As in Redis, a NUL hides all bytes behind it, so such a line only ends with
// the error tooBig.
func (d *Decoder) lineEnd(frame []byte, end byte, tooBig Error) (int, error) {
	limit := d.at + d.limits.Inline + 1
	window := frame[:min(len(frame), limit)]
	i := d.looked
	for i < len(window) && window[i] != end && window[i] != 0 {
		i++
	}
	d.looked = i
	if i < len(window) && window[i] == end {
		return i, nil
	}
	if len(window) == limit {
		return -1, ProtocolError{tooBig, LimitInline}
	}
	return -1, nil
}

// pass moves d.at behind the two bytes at end. Redis takes any two bytes there for a
// line end.
func (d *Decoder) pass(end int) {
	d.at = end + 2
	d.looked = d.at
}

// splitArray splits an array that measureArray accepted.
func (d *Decoder) splitArray(raw []byte) [][]byte {
	if raw[1] == '-' || raw[1] == '0' {
		return d.args[:0]
	}
	args := d.args[:0]
	line := bytes.IndexByte(raw, '\r')
	for rest := raw[line+2:]; len(rest) > 0; {
		line = bytes.IndexByte(rest, '\r')
		length, _ := resp.ParseDecimal(rest[1:line])
		rest = rest[line+2:]
		args = append(args, rest[:length:length])
		rest = rest[length+2:]
	}
	return args
}

// expectedDollar returns the error for an argument that begins with got instead of a
// dollar. Like Redis, it writes a space for a byte that would end the reply's line.
func expectedDollar(got byte) ProtocolError {
	if got == '\r' || got == '\n' {
		got = ' '
	}
	return ProtocolError{Text: Error("-ERR Protocol error: expected '$', got '" + string([]byte{got}) + "'\r\n")}
}
