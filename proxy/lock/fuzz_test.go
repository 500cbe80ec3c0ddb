package lock

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/proxy/wire"
)

func FuzzParseSet(f *testing.F) {
	for _, seed := range []string{"NX PX 10", "EXAT 1700000007 XX GET", "IFEQ a KEEPTTL", "PXAT 9223372036854775807", "EX 9223372036854776", "NX\x00 GET EX", "PXAT -1"} {
		f.Add(seed)
	}
	parse := func(args [][]byte) (options, wire.Error) { return optionsOf(args, parseNow) }
	f.Fuzz(func(t *testing.T, text string) {
		args := [][]byte{[]byte("SET"), []byte("k"), []byte("v")}
		for word := range strings.SplitSeq(text, " ") {
			args = append(args, []byte(word))
		}
		c, reply := parse(args)
		if reply != "" && reply != wire.ErrSyntax && reply != wire.ErrNotInteger && reply != errorExpireTime("set") {
			t.Errorf("%q: unknown error %q", text, reply)
		}
		lower := slices.Clone(args)
		for i := range lower[3:] {
			lower[3+i] = bytes.ToLower(args[3+i])
		}
		if again, replyAgain := parse(lower); again != c || replyAgain != reply {
			t.Errorf("%q: %+v, %q; in lower case %+v, %q", text, c, reply, again, replyAgain)
		}
		if reply != "" || c.conditional {
			return
		}
		if c.onlyAbsent && c.onlyPresent || c.ttl < 0 || c.ttl > 0 && (c.keepTTL || c.over) {
			t.Errorf("%q: contradiction in %+v", text, c)
		}
		// Relative, it is the same command without an absolute time.
		same, reply := parse(c.relative(args))
		if !c.over && c.timeAt > 0 {
			c.unitAt, c.timeAt, c.ttl = 0, 0, lockTTL(c.ttl).Milliseconds()
		}
		if reply != "" || same != c {
			t.Errorf("%q: relative %+v, %q; want %+v", text, same, reply, c)
		}
	})
}

func FuzzCheckEval(f *testing.F) {
	f.Add(strings.Repeat("a", 40), "1", 2)
	f.Add("s", "-1", 0)
	f.Add("s", "9223372036854775808", 3)
	f.Fuzz(func(t *testing.T, script, numkeys string, more int) {
		args := [][]byte{[]byte("EVAL"), []byte(script), []byte(numkeys)}
		for i := range more & 15 {
			args = append(args, strconv.AppendInt(nil, int64(i), 10))
		}
		reply := checkEval(args, false)
		n, err := strconv.Atoi(numkeys)
		if accepted := reply == ""; accepted != (err == nil && strconv.Itoa(n) == numkeys && n >= 0 && n <= more&15) {
			t.Errorf("%q keys of %d: %q", numkeys, more&15, reply)
		}
		if bySHA := checkEval(args, true); bySHA != reply && (len(script) == 40 || bySHA != errorNoScript) {
			t.Errorf("by SHA1 of %d bytes: %q, else %q", len(script), bySHA, reply)
		}
	})
}
