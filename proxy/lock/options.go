package lock

import (
	"math"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// options are what a command of the SET, GETEX and EXPIRE families says of its key, parsed as redis-server 7.0.15
// parses it. With an error of the parser, no time is given.
type options struct {
	onlyAbsent  bool // NX of SET
	onlyPresent bool // XX of SET
	get         bool
	keepTTL     bool
	// conditional means that IFEQ, IFNE, IFDEQ or IFDNE is among the options. Only
	// newer servers know these, so the masters judge everything about the command.
	conditional bool
	// expires is the option of EXPIRE: NX, XX, GT or LT, or "". GT implies XX, so the two
	// together are GT. bothXXLT means that XX and LT are both given, which no single option expresses.
	expires  string
	bothXXLT bool
	// ttl is in milliseconds from now, or 0 if none is given. An absolute time is
	// already converted, so that the masters' clocks need not agree.
	ttl int64
	// over means that the time has passed. Redis sets a key of SET and deletes it
	// at once.
	over bool
	// unitAt and timeAt are where an absolute time is among the arguments, with its unit; 0 and 0: there is none. The
	// name of EXPIREAT is a unit.
	unitAt, timeAt int
}

// options parses a command. The second result is Redis's whole error
// reply, or empty if the command is valid. It is the zero value for all other commands.
func (c Command) options(now time.Time) (o options, refusal wire.Error) {
	switch args, name := c.Args, c.Route.Spec.Name; name {
	case "set":
		refusal = o.parseSet(args, now)
	case "setex":
		refusal = o.setTime(args[2], "EX", name, now)
	case "psetex":
		refusal = o.setTime(args[2], "PX", name, now)
	case "getex":
		o.parseGetEX(args, now)
	case "expire", "expireat":
		refusal = o.parseExpire(args, name, now, 1000)
	case "pexpire", "pexpireat":
		refusal = o.parseExpire(args, name, now, 1)
	}
	return o, refusal
}

// optionNames are the options that optionOf knows.
var optionNames = [...]string{"NX", "PX", "EX", "XX", "GET", "KEEPTTL", "PXAT", "EXAT", "GT", "LT", "IFEQ", "IFNE", "IFDEQ", "IFDNE"}

// optionOf returns the name of the option that an argument is, or "". As strcasecmp, it
// ignores case and all bytes from a NUL on.
func optionOf(arg []byte) string {
	var upper [len("KEEPTTL") + 1]byte
	word := append(upper[:0], wire.UntilNUL(arg[:min(len(arg), len(upper))])...)
	for i, c := range word {
		if 'a' <= c { // above 'z' the result is no letter either
			word[i] -= 'a' - 'A'
		}
	}
	for _, name := range optionNames {
		if string(word) == name {
			return name
		}
	}
	return ""
}

// parseSet parses SET key value [options].
func (o *options) parseSet(args [][]byte, now time.Time) wire.Error {
	unit, unitAt := "", 0
	for i := 3; i < len(args); i++ {
		last := i == len(args)-1
		switch word := optionOf(args[i]); {
		case word == "NX" && !o.onlyPresent:
			o.onlyAbsent = true
		case word == "XX" && !o.onlyAbsent:
			o.onlyPresent = true
		case word == "GET":
			o.get = true
		case word == "KEEPTTL" && unit == "":
			o.keepTTL = true
		case isTime(word) && (unit == "" || unit == word) && !o.keepTTL && !last:
			// The same option may stand twice. The last one counts.
			unit, unitAt = word, i
			i++
		case (word == "IFEQ" || word == "IFNE" || word == "IFDEQ" || word == "IFDNE") && !last:
			o.conditional = true
			i++
		case o.conditional:
			return ""
		default:
			return wire.ErrSyntax
		}
	}
	if unit == "" {
		return ""
	}
	refusal := o.setTimeAt(args, unit, unitAt, "set", now)
	if o.conditional {
		return ""
	}
	return refusal
}

// parseGetEX parses GETEX key [options] only if it gives a time. Redis checks the key
// before the time, so it leaves every error in the command to the masters.
func (o *options) parseGetEX(args [][]byte, now time.Time) {
	if len(args) != 4 {
		return
	}
	if unit := optionOf(args[2]); isTime(unit) {
		_ = o.setTimeAt(args, unit, 2, "getex", now)
	}
}

// parseExpire parses EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT key time [options]. unit is in milliseconds.
func (o *options) parseExpire(args [][]byte, name string, now time.Time, unit int64) wire.Error {
	has := map[string]bool{}
	for _, option := range args[3:] {
		word := optionOf(option)
		if word != "NX" && word != "XX" && word != "GT" && word != "LT" {
			return errorExpireOption(wire.UntilNUL(option))
		}
		has[word] = true
		if o.expires == "" || o.expires == "XX" { // GT and LT say more
			o.expires = word
		}
	}
	n, ok := resp.ParseDecimal(args[2])
	switch {
	case has["NX"] && len(has) > 1:
		return errorExpireNX
	case has["GT"] && has["LT"]:
		return errorExpireGTLT
	case !ok:
		return wire.ErrNotInteger
	case n > math.MaxInt64/unit || n < math.MinInt64/unit:
		return errorExpireTime(name)
	}
	n *= unit
	switch absolute := name == "expireat" || name == "pexpireat"; {
	case absolute:
		n, o.timeAt = max(n, 0)-now.UnixMilli(), 2 // any time before 1970 has the effect of 0
	case n > math.MaxInt64-now.UnixMilli():
		return errorExpireTime(name)
	}
	o.bothXXLT = has["XX"] && has["LT"]
	o.ttl, o.over = max(n, 0), n <= 0
	return ""
}

func isTime(word string) bool {
	return word == "EX" || word == "PX" || word == "EXAT" || word == "PXAT"
}

// setTimeAt is setTime for the time behind a unit among the arguments.
func (o *options) setTimeAt(args [][]byte, unit string, unitAt int, name string, now time.Time) (refusal wire.Error) {
	refusal = o.setTime(args[unitAt+1], unit, name, now)
	if refusal == "" && len(unit) == len("EXAT") {
		o.unitAt, o.timeAt = unitAt, unitAt+1
	}
	return refusal
}

// setTime parses a time with all checks of Redis, overflow included.
func (o *options) setTime(arg []byte, unit, name string, now time.Time) (refusal wire.Error) {
	n, ok := resp.ParseDecimal(arg)
	seconds, absolute := unit[0] == 'E', len(unit) == len("EXAT")
	switch {
	case !ok:
		return wire.ErrNotInteger
	case n <= 0 || seconds && n > math.MaxInt64/1000:
		return errorExpireTime(name)
	case seconds:
		n *= 1000
	}
	switch {
	case absolute:
		n -= now.UnixMilli()
	case n > math.MaxInt64-now.UnixMilli():
		return errorExpireTime(name)
	}
	o.ttl, o.over = max(n, 0), n <= 0
	return ""
}

// shortestKept is the shortest TTL, in ms, that masters can agree on. A shorter one may end before a
// master shows its copy.
const shortestKept = 3

// ends tells whether the key ends before a master shows its copy.
func (o options) ends() bool { return o.over || o.ttl > 0 && o.ttl < shortestKept }

// relative returns the arguments with an absolute time made relative to now. A time that
// has passed becomes 1, which has passed on all clocks. It returns args itself if there is
// nothing to convert, and never changes args.
func (o options) relative(args [][]byte) [][]byte {
	if o.timeAt == 0 {
		return args
	}
	args = slices.Clone(args)
	switch {
	case o.over:
		args[o.timeAt] = []byte("1")
		return args
	case o.unitAt == 0:
		args[0] = []byte("PEXPIRE")
	default:
		args[o.unitAt] = []byte("PX")
	}
	args[o.timeAt] = strconv.AppendInt(nil, lockTTL(o.ttl).Milliseconds(), 10)
	return args
}

// longestTTL replaces longer times in native lock commands. Some libraries say "for
// ever" with a thousand years, but a time.Duration ends at 292 years.
const longestTTL = 100 * 365 * 24 * time.Hour

// lockTTL converts milliseconds to a duration. 0 stays 0, which means no TTL.
func lockTTL(milliseconds int64) time.Duration {
	return time.Duration(min(milliseconds, longestTTL.Milliseconds())) * time.Millisecond
}
