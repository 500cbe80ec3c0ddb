package lock

import (
	"math"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// expireCommand is one command of the EXPIRE family, parsed as redis-server 7.0.15
// parses it.
type expireCommand struct {
	// ttl is in milliseconds from now. 0 or less deletes the key.
	ttl int64
	// condition is NX, XX, GT or LT, or empty. GT implies XX, so the two
	// together are GT.
	condition string
	// bothXXLT means that XX and LT are both given. No single condition expresses that.
	bothXXLT bool
	absolute bool
}

// parseExpire parses EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT key time [options]. name is
// the command in lower case. The second result is Redis's whole error reply, or empty
// if the command is valid.
func parseExpire(name string, args [][]byte, now time.Time) (expireCommand, wire.Error) {
	var c expireCommand
	if reply := c.setCondition(args[3:]); reply != "" {
		return c, reply
	}
	n, ok := resp.ParseDecimal(args[2])
	if !ok {
		return c, wire.ErrNotInteger
	}
	if name == "expire" || name == "expireat" {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return c, errorExpireTime(name)
		}
		n *= 1000
	}
	c.absolute = name == "expireat" || name == "pexpireat"
	switch {
	case c.absolute:
		n = max(n, 0) - now.UnixMilli() // any time before 1970 has the effect of 0
	case n > math.MaxInt64-now.UnixMilli():
		return c, errorExpireTime(name)
	}
	c.ttl = n
	return c, ""
}

func (c *expireCommand) setCondition(options [][]byte) (reply wire.Error) {
	has := map[string]bool{}
	for _, option := range options {
		word := oneOf(option, "NX", "XX", "GT", "LT")
		if word == "" {
			return errorExpireOption(wire.UntilNUL(option))
		}
		has[word] = true
		if c.condition == "" || c.condition == "XX" { // GT and LT say more
			c.condition = word
		}
	}
	switch {
	case has["NX"] && len(has) > 1:
		return errorExpireNX
	case has["GT"] && has["LT"]:
		return errorExpireGTLT
	}
	c.bothXXLT = has["XX"] && has["LT"]
	return ""
}

// relative returns the arguments with an absolute time made relative to now. A time that
// has passed becomes 0, because the clock of a master may be behind.
func (c expireCommand) relative(args [][]byte) [][]byte {
	if !c.absolute {
		return args
	}
	args = slices.Clone(args)
	args[0] = []byte("PEXPIRE")
	args[2] = strconv.AppendInt(nil, lockTTL(max(0, c.ttl)).Milliseconds(), 10)
	return args
}
