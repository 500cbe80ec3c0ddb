package proxy

import (
	"math"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// setCommand is one command of the SET family, read as redis-server 7.0.15
// reads it: SET, SETNX, GETSET, SETEX, PSETEX and GETEX.
type setCommand struct {
	onlyAbsent  bool // NX
	onlyPresent bool // XX
	get         bool
	keepTTL     bool
	// conditional: IFEQ, IFNE, IFDEQ or IFDNE is among the options. Only newer
	// servers know these, so the masters judge everything about the command.
	conditional bool
	// ttl in milliseconds from now, 0 without one. An absolute time is already
	// converted, so that the masters' clocks need not agree.
	ttl int64
	// over: the absolute time given has passed. Redis sets the key, which is
	// gone at once.
	over bool
	// absoluteAt is where in the arguments EXAT or PXAT stands, 0 if nowhere.
	absoluteAt int
}

// timeUnit is how a command gives a time to live.
type timeUnit uint8

const (
	noTime timeUnit = iota
	inSeconds
	inMilliseconds
	atSecond
	atMillisecond
)

func (u timeUnit) absolute() bool { return u == atSecond || u == atMillisecond }
func (u timeUnit) seconds() bool  { return u == inSeconds || u == atSecond }

func timeOption(word []byte) timeUnit {
	switch {
	case wire.IsWord(word, "EX"):
		return inSeconds
	case wire.IsWord(word, "PX"):
		return inMilliseconds
	case wire.IsWord(word, "EXAT"):
		return atSecond
	case wire.IsWord(word, "PXAT"):
		return atMillisecond
	}
	return noTime
}

func isNewerCondition(word []byte) bool {
	return wire.IsWord(word, "IFEQ") || wire.IsWord(word, "IFNE") || wire.IsWord(word, "IFDEQ") || wire.IsWord(word, "IFDNE")
}

// parseSet reads SET key value [options]. The second result is Redis's whole
// error reply, empty if the command is right.
func parseSet(args [][]byte, now time.Time) (setCommand, string) {
	var c setCommand
	unit, timeAt := noTime, 0
	for i := 3; i < len(args); i++ {
		word, last := args[i], i == len(args)-1
		option := timeOption(word)
		switch {
		case wire.IsWord(word, "NX") && !c.onlyPresent:
			c.onlyAbsent = true
		case wire.IsWord(word, "XX") && !c.onlyAbsent:
			c.onlyPresent = true
		case wire.IsWord(word, "GET"):
			c.get = true
		case wire.IsWord(word, "KEEPTTL") && unit == noTime:
			c.keepTTL = true
		case option != noTime && (unit == noTime || unit == option) && !c.keepTTL && !last:
			// The same option twice is no error; the last one counts.
			unit, timeAt = option, i
			i++
		case isNewerCondition(word) && !last:
			c.conditional = true
			i++
		case c.conditional:
			return c, ""
		default:
			return c, wire.ErrSyntax
		}
	}
	if unit == noTime {
		return c, ""
	}
	reply := c.setTime(args[timeAt+1], unit, "set", now)
	if reply != "" && c.conditional {
		return c, ""
	}
	if unit.absolute() {
		c.absoluteAt = timeAt
	}
	return c, reply
}

// parseSetEX reads SETEX and PSETEX key time value.
func parseSetEX(name string, args [][]byte, now time.Time) (setCommand, string) {
	var c setCommand
	unit := inSeconds
	if name == "psetex" {
		unit = inMilliseconds
	}
	return c, c.setTime(args[2], unit, name, now)
}

// parseGetEX reads GETEX key [options] as far as an absolute time is given.
// Redis looks at the key before it looks at the time, so what is wrong with
// the command is left to the masters.
func parseGetEX(args [][]byte, now time.Time) setCommand {
	var c setCommand
	if len(args) != 4 {
		return c
	}
	if unit := timeOption(args[2]); unit.absolute() && c.setTime(args[3], unit, "getex", now) == "" {
		c.absoluteAt = 2
		return c
	}
	return setCommand{}
}

// setTime reads a time with Redis's checks, overflow included.
func (c *setCommand) setTime(arg []byte, unit timeUnit, name string, now time.Time) (reply string) {
	n, ok := resp.ParseDecimal(arg)
	if !ok {
		return wire.ErrNotInteger
	}
	if n <= 0 || unit.seconds() && n > math.MaxInt64/1000 {
		return errorExpireTime(name)
	}
	if unit.seconds() {
		n *= 1000
	}
	if unit.absolute() {
		n -= now.UnixMilli()
		if n <= 0 {
			c.over = true
			return ""
		}
	} else if n > math.MaxInt64-now.UnixMilli() {
		return errorExpireTime(name)
	}
	c.ttl = n
	return ""
}

// relative is the command with its absolute time made relative to now, or the
// arguments as they are if there is nothing to convert.
func (c setCommand) relative(args [][]byte) [][]byte {
	if c.absoluteAt == 0 || c.over {
		return args
	}
	args = slices.Clone(args)
	args[c.absoluteAt] = []byte("PX")
	args[c.absoluteAt+1] = strconv.AppendInt(nil, c.ttl, 10)
	return args
}

// longestTTL is what longer times become in native lock commands: some
// libraries say "for ever" with a thousand years, and durations end at 292.
const longestTTL = 100 * 365 * 24 * time.Hour

// lockTTL converts milliseconds above 0; 0 stays 0, which means none.
func lockTTL(milliseconds int64) time.Duration {
	if milliseconds > longestTTL.Milliseconds() {
		return longestTTL
	}
	return time.Duration(milliseconds) * time.Millisecond
}
