package proxy

import (
	"math"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// expireCommand is one command of the EXPIRE family, read as redis-server
// 7.0.15 reads it.
type expireCommand struct {
	// ttl in milliseconds from now; 0 or less deletes the key.
	ttl int64
	// condition is NX, XX, GT or LT, or empty. GT implies XX, so the two
	// together are GT.
	condition string
	// bothXXLT: XX and LT stand together, which no single condition expresses.
	bothXXLT bool
	absolute bool
}

func (c expireCommand) unconditional() bool { return c.condition == "" }

// parseExpire reads EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT key time [options];
// name is the command in lower case. The second result is Redis's whole error
// reply, empty if the command is right.
func parseExpire(name string, args [][]byte, now time.Time) (expireCommand, string) {
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
		n = max(n, 0) - now.UnixMilli() // any time before 1970 is as good as 0
	case n > math.MaxInt64-now.UnixMilli():
		return c, errorExpireTime(name)
	}
	c.ttl = n
	return c, ""
}

func (c *expireCommand) setCondition(options [][]byte) (reply string) {
	var nx, xx, gt, lt bool
	for _, option := range options {
		switch {
		case wire.IsWord(option, "NX"):
			nx = true
		case wire.IsWord(option, "XX"):
			xx = true
		case wire.IsWord(option, "GT"):
			gt = true
		case wire.IsWord(option, "LT"):
			lt = true
		default:
			return errorExpireOption(wire.UntilNUL(option))
		}
	}
	switch {
	case nx && (xx || gt || lt):
		return errorExpireNX
	case gt && lt:
		return errorExpireGTLT
	case gt:
		c.condition = "GT"
	case lt:
		c.condition = "LT"
		c.bothXXLT = xx
	case nx:
		c.condition = "NX"
	case xx:
		c.condition = "XX"
	}
	return ""
}

// relative is the command with its absolute time made relative to now. A time
// in the past stays as it is: it deletes on whatever clock.
func (c expireCommand) relative(args [][]byte) [][]byte {
	if !c.absolute || c.ttl <= 0 {
		return args
	}
	args = slices.Clone(args)
	args[0] = []byte("PEXPIRE")
	args[2] = strconv.AppendInt(nil, c.ttl, 10)
	return args
}
