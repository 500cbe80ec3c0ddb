package lock

import (
	"math"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// setCommand is one command of the SET family: SET, SETNX, GETSET, SETEX, PSETEX or
// GETEX. It is parsed as redis-server 7.0.15 parses it.
type setCommand struct {
	onlyAbsent  bool // NX
	onlyPresent bool // XX
	get         bool
	keepTTL     bool
	// conditional means that IFEQ, IFNE, IFDEQ or IFDNE is among the options. Only
	// newer servers know these, so the masters judge everything about the command.
	conditional bool
	// ttl is in milliseconds from now, or 0 if none is given. An absolute time is
	// already converted, so that the masters' clocks need not agree.
	ttl int64
	// over means that the absolute time has passed. Redis sets the key and deletes it
	// at once.
	over bool
	// absoluteAt is the index of EXAT or PXAT in the arguments, 0 if there is none.
	absoluteAt int
}

// timeUnit is the name of the option that gives a time to live, "" for none.
type timeUnit string

func (u timeUnit) absolute() bool { return u == "EXAT" || u == "PXAT" }
func (u timeUnit) seconds() bool  { return u == "EX" || u == "EXAT" }

func timeOption(word []byte) timeUnit { return timeUnit(oneOf(word, "EX", "PX", "EXAT", "PXAT")) }

// oneOf returns the option that a word is, or "" if it is none of them.
func oneOf(word []byte, options ...string) string {
	for _, option := range options {
		if wire.IsWord(word, option) {
			return option
		}
	}
	return ""
}

// parseSet parses SET key value [options]. The second result is Redis's whole error
// reply, or empty if the command is valid.
func parseSet(args [][]byte, now time.Time) (setCommand, wire.Error) {
	var c setCommand
	unit, timeAt := timeUnit(""), 0
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
		case wire.IsWord(word, "KEEPTTL") && unit == "":
			c.keepTTL = true
		case option != "" && (unit == "" || unit == option) && !c.keepTTL && !last:
			// The same option may stand twice. The last one counts.
			unit, timeAt = option, i
			i++
		case oneOf(word, "IFEQ", "IFNE", "IFDEQ", "IFDNE") != "" && !last:
			c.conditional = true
			i++
		case c.conditional:
			return c, ""
		default:
			return c, wire.ErrSyntax
		}
	}
	if unit == "" {
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

// parseSetEX parses SETEX and PSETEX key time value.
func parseSetEX(name string, args [][]byte, now time.Time) (setCommand, wire.Error) {
	var c setCommand
	unit := timeUnit("EX")
	if name == "psetex" {
		unit = "PX"
	}
	return c, c.setTime(args[2], unit, name, now)
}

// parseGetEX parses GETEX key [options] only if it gives a time. Redis checks the key
// before the time, so it leaves every error in the command to the masters.
func parseGetEX(args [][]byte, now time.Time) (c setCommand) {
	if len(args) != 4 {
		return c
	}
	unit := timeOption(args[2])
	if unit == "" || c.setTime(args[3], unit, "getex", now) != "" {
		return setCommand{}
	}
	if unit.absolute() {
		c.absoluteAt = 2
	}
	return c
}

// shortestKept is the shortest TTL, in ms, that masters can agree on. A shorter one may end before a
// master shows its copy.
const shortestKept = 3

// ends tells whether the key ends before a master shows its copy.
func (c setCommand) ends() bool { return c.over || c.ttl > 0 && c.ttl < shortestKept }

// setTime parses a time with all checks of Redis, overflow included.
func (c *setCommand) setTime(arg []byte, unit timeUnit, name string, now time.Time) (reply wire.Error) {
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

// relative returns the arguments with the absolute time made relative to now. A time that
// has passed becomes 1, which has passed on all clocks. It returns args itself if there is
// nothing to convert, and never changes args.
func (c setCommand) relative(args [][]byte) [][]byte {
	if c.absoluteAt == 0 {
		return args
	}
	args = slices.Clone(args)
	if c.over {
		args[c.absoluteAt+1] = []byte("1")
		return args
	}
	args[c.absoluteAt] = []byte("PX")
	args[c.absoluteAt+1] = strconv.AppendInt(nil, lockTTL(c.ttl).Milliseconds(), 10)
	return args
}

// longestTTL replaces longer times in native lock commands. Some libraries say "for
// ever" with a thousand years, but a time.Duration ends at 292 years.
const longestTTL = 100 * 365 * 24 * time.Hour

// lockTTL converts milliseconds to a duration. 0 stays 0, which means no TTL.
func lockTTL(milliseconds int64) time.Duration {
	return time.Duration(min(milliseconds, longestTTL.Milliseconds())) * time.Millisecond
}
