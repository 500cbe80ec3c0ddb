package wire

import (
	"bytes"
	"math"
	"strings"
	"unsafe"

	"github.com/tidwall/redcon"

	"redlock-proxy/redlock/resp"
)

// Limits bound what one command may be made of. Bytes held for an
// unfinished command are bounded by whoever owns the buffer.
type Limits struct {
	Bulk      int64 // longest argument of a RESP array, in bytes
	Multibulk int   // most arguments of a RESP array
	Inline    int   // longest inline command, and longest line that holds a length, in bytes

	// Before authentication.
	LoginMultibulk int
	LoginBulk      int64
}

// RedisLimits are those of a Redis server as it is installed.
var RedisLimits = Limits{
	Bulk: 512 << 20, Multibulk: math.MaxInt32, Inline: 64 << 10,
	LoginMultibulk: 10, LoginBulk: 16 << 10,
}

const (
	// maxBulkLimit keeps sums of a length and an offset inside an int64.
	maxBulkLimit = 1 << 60
	// maxKeptArgs is how many argument slots a Decoder keeps between commands.
	maxKeptArgs = 1024
)

// A Limit is a limit of Limits by its key in the configuration.
type Limit string

const (
	LimitBulk           Limit = "bulk"
	LimitMultibulk      Limit = "multibulk"
	LimitInline         Limit = "inline"
	LimitLoginMultibulk Limit = "login_multibulk"
	LimitLoginBulk      Limit = "login_bulk"
)

// A ProtocolError says why a client's bytes are no command. After it the
// connection closes.
type ProtocolError struct {
	Text  string // the whole error reply, in Redis's words
	Limit Limit  // which limit was reached; "": the bytes are wrong
}

func (e ProtocolError) Error() string { return strings.TrimSuffix(e.Text[1:], "\r\n") }

const (
	ErrBigInline        = "-ERR Protocol error: too big inline request\r\n"
	ErrQuotes           = "-ERR Protocol error: unbalanced quotes in request\r\n"
	ErrBigCount         = "-ERR Protocol error: too big mbulk count string\r\n"
	ErrCount            = "-ERR Protocol error: invalid multibulk length\r\n"
	ErrCountBeforeAuth  = "-ERR Protocol error: unauthenticated multibulk length\r\n"
	ErrBigLength        = "-ERR Protocol error: too big bulk count string\r\n"
	ErrLength           = "-ERR Protocol error: invalid bulk length\r\n"
	ErrLengthBeforeAuth = "-ERR Protocol error: unauthenticated bulk length\r\n"
)

// Command is one command as a client sent it.
type Command struct {
	Raw  []byte   // exactly the bytes that came: a RESP array, or an inline line with its line end
	Args [][]byte // at least one; parts of raw, or copies where an inline argument was quoted
}

// A Decoder finds the commands in one client's input: only a frame whose every
// length was checked and whose every byte is there is handed on. What Redis
// accepts, it accepts, odd forms included, and what Redis refuses it refuses
// with the same words; so the bytes of an accepted command can be forwarded as
// they are.
type Decoder struct {
	limits        Limits
	authenticated bool
	args          [][]byte

	// Charge takes the argument slots of a very long array from the memory that
	// all sessions share, or gives them back; nil: there is no bound.
	Charge  func(bytes int) error
	charged int

	// How far the unfinished command was looked at, as offsets from its first byte.
	at     int   // before it, all is checked
	looked int   // at..looked holds no line end
	total  int   // arguments of the array
	count  int   // of those, still to come; 0 before the array's own line was read
	bulk   int64 // length of the argument that begins at at; -1 before its line was read
}

// NewDecoder begins before authentication.
func NewDecoder(limits Limits) *Decoder {
	g := &Decoder{bulk: -1}
	g.SetLimits(limits)
	return g
}

// SetLimits holds from the next length on that is read.
func (g *Decoder) SetLimits(limits Limits) {
	limits.Bulk = min(limits.Bulk, maxBulkLimit)
	g.limits = limits
}

// SetAuthenticated says whether the limits for clients that still have to
// authenticate are off. It holds from the next length on that is read, so it
// must be called before next is asked for the command after AUTH.
func (g *Decoder) SetAuthenticated(yes bool) { g.authenticated = yes }

// Next takes one whole command from the front of buf. n is how many bytes are
// done with, also when ok is false, for Redis ignores arrays without elements
// and empty lines. The caller keeps buf[n:] and calls again with those bytes
// and more behind them; what was looked at is not looked at again. need, if not
// 0, is how many bytes buf[n:] will at least have when the command is whole; a
// client can name any number up to the limits, so it is a hint for sizing a
// read and not for allocating. An error is a ProtocolError or charge's, and
// ends the session. The command is valid until the next call, its args no
// longer than buf.
func (g *Decoder) Next(buf []byte) (cmd Command, n int, ok bool, need int, err error) {
	g.ForgetArgs()
	for n < len(buf) {
		frame := buf[n:]
		array := frame[0] == '*'
		if array && g.at == 0 {
			if size := g.splitUsual(frame); size > 0 {
				g.looked = 0
				return Command{Raw: frame[:size:size], Args: g.args}, n + size, true, 0, nil
			}
		}
		var size int
		if array {
			size, need, err = g.measureArray(frame)
		} else {
			size, err = g.measureLine(frame)
		}
		if size == 0 || err != nil {
			return Command{}, n, false, need, err
		}
		raw := frame[:size:size]
		if array {
			if err = g.makeRoom(); err != nil {
				return Command{}, n, false, 0, err
			}
			g.args = g.splitArray(raw)
		} else if g.args, err = splitInline(g.args, raw); err != nil {
			return Command{}, n, false, 0, err
		}
		g.at, g.looked = 0, 0
		n += size
		if len(g.args) > 0 {
			return Command{Raw: raw, Args: g.args}, n, true, 0, nil
		}
	}
	return Command{}, n, false, 0, nil
}

// ForgetArgs lets go of the last command, so that an idle session keeps
// neither its buffer nor a long list alive.
func (g *Decoder) ForgetArgs() {
	if cap(g.args) > maxKeptArgs {
		g.args = nil
		if g.Charge != nil {
			_ = g.Charge(-g.charged)
		}
		g.charged = 0
		return
	}
	clear(g.args)
	g.args = g.args[:0]
}

// makeRoom has slots for the arguments of a whole array. Those of a long one
// may take more than its bytes do.
func (g *Decoder) makeRoom() error {
	if g.total <= maxKeptArgs {
		return nil
	}
	size := g.total * int(unsafe.Sizeof(g.args[0]))
	if g.Charge != nil {
		if err := g.Charge(size); err != nil {
			return err
		}
	}
	g.charged = size
	g.args = make([][]byte, 0, g.total)
	return nil
}

// measureLine returns the length of the inline command at the front of frame,
// 0 while its line end is missing.
func (g *Decoder) measureLine(frame []byte) (size int, err error) {
	end, err := g.lineEnd(frame, '\n', ErrBigInline)
	if end < 0 {
		return 0, err
	}
	return end + 1, nil
}

// measureArray returns the length of the array at the front of frame, 0 while
// parts of it are missing.
func (g *Decoder) measureArray(frame []byte) (size, need int, err error) {
	if g.count == 0 {
		count, found, err := g.number(frame, ErrBigCount)
		switch {
		case err != nil || !found:
			return 0, 0, err
		case !count.ok:
			return 0, 0, ProtocolError{Text: ErrCount}
		case count.value > int64(g.limits.Multibulk):
			return 0, 0, ProtocolError{ErrCount, LimitMultibulk}
		case count.value > int64(g.limits.LoginMultibulk) && !g.authenticated:
			return 0, 0, ProtocolError{ErrCountBeforeAuth, LimitLoginMultibulk}
		}
		g.pass(count.end)
		g.count = int(max(count.value, 0))
		g.total = g.count
	}
	for g.count > 0 {
		if g.bulk < 0 {
			length, found, err := g.number(frame, ErrBigLength)
			switch {
			case err != nil || !found:
				return 0, 0, err
			case frame[g.at] != '$':
				return 0, 0, expectedDollar(frame[g.at])
			case !length.ok || length.value < 0:
				return 0, 0, ProtocolError{Text: ErrLength}
			case length.value > g.limits.Bulk:
				return 0, 0, ProtocolError{ErrLength, LimitBulk}
			case length.value > g.limits.LoginBulk && !g.authenticated:
				return 0, 0, ProtocolError{ErrLengthBeforeAuth, LimitLoginBulk}
			}
			g.pass(length.end)
			g.bulk = length.value
		}
		if int64(len(frame)-g.at) < g.bulk+2 {
			return 0, g.at + int(g.bulk) + 2, nil
		}
		g.pass(g.at + int(g.bulk))
		g.bulk = -1
		g.count--
	}
	return g.at, 0, nil
}

type lineNumber struct {
	value int64
	ok    bool
	end   int // where its \r is
}

// number reads the line at g.at up to its \r, skipping the type byte. Redis
// looks at nothing in the line before one byte more than the \r is there.
func (g *Decoder) number(frame []byte, tooBig string) (line lineNumber, found bool, err error) {
	end, err := g.lineEnd(frame, '\r', tooBig)
	if end < 0 || end+1 == len(frame) {
		return lineNumber{}, false, err
	}
	// A line that is only its end has no type byte; whoever asked finds out.
	value, ok := resp.ParseDecimal(frame[min(g.at+1, end):end])
	return lineNumber{value: value, ok: ok, end: end}, true, nil
}

// lineEnd finds the byte that ends the line at g.at, -1 while it is missing.
// As in Redis a NUL hides all that follows, so that such a line only ends by
// becoming too long.
func (g *Decoder) lineEnd(frame []byte, end byte, tooBig string) (int, error) {
	limit := g.at + g.limits.Inline + 1
	window := frame[:min(len(frame), limit)]
	i := g.looked
	for i < len(window) && window[i] != end && window[i] != 0 {
		i++
	}
	g.looked = i
	if i < len(window) && window[i] == end {
		return i, nil
	}
	if len(window) == limit {
		return -1, ProtocolError{tooBig, LimitInline}
	}
	return -1, nil
}

// pass moves behind what was checked and the two bytes at end, which Redis
// takes for a line end whatever they are.
func (g *Decoder) pass(end int) {
	g.at = end + 2
	g.looked = g.at
}

// splitArray splits a measured array. Where something else stands in the place
// of a \r\n, redcon refuses what Redis takes, and it is split here.
func (g *Decoder) splitArray(raw []byte) [][]byte {
	if raw[1] == '-' || raw[1] == '0' {
		return g.args[:0]
	}
	if complete, args, _, _, err := redcon.ReadNextCommand(raw, g.args[:0]); complete && err == nil {
		return args
	}
	args := g.args[:0]
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

// expectedDollar words the error for an argument that begins with got. Redis
// puts a space for a byte that would break the reply's line.
func expectedDollar(got byte) ProtocolError {
	if got == '\r' || got == '\n' {
		got = ' '
	}
	return ProtocolError{Text: "-ERR Protocol error: expected '$', got '" + string([]byte{got}) + "'\r\n"}
}
