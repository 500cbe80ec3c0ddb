package lock

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/wire"
)

var parseNow = time.UnixMilli(1_700_000_000_000)

func TestParseSet(t *testing.T) {
	invalid := errorExpireTime("set")
	for _, row := range []struct {
		options string
		want    setCommand
		reply   wire.Error
	}{
		{"", setCommand{}, ""},
		{"NX PX 10", setCommand{onlyAbsent: true, ttl: 10}, ""},
		{"PX 10 NX", setCommand{onlyAbsent: true, ttl: 10}, ""},
		{"px 10 nx", setCommand{onlyAbsent: true, ttl: 10}, ""},
		{"nX eX 2 gEt", setCommand{onlyAbsent: true, get: true, ttl: 2000}, ""},
		{"XX KEEPTTL", setCommand{onlyPresent: true, keepTTL: true}, ""},
		{"GET GET", setCommand{get: true}, ""},
		{"NX NX", setCommand{onlyAbsent: true}, ""},
		{"EX 5 EX 7", setCommand{ttl: 7000}, ""},
		{"PX 31557600000000 NX", setCommand{onlyAbsent: true, ttl: 31557600000000}, ""},
		{"EXAT 1700000007", setCommand{ttl: 7000, absoluteAt: 3}, ""},
		{"XX PXAT 1700000000001", setCommand{onlyPresent: true, ttl: 1, absoluteAt: 4}, ""},
		{"NX PXAT 1700000000000", setCommand{onlyAbsent: true, over: true, absoluteAt: 4}, ""},
		{"PXAT 9223372036854775807", setCommand{ttl: math.MaxInt64 - 1_700_000_000_000, absoluteAt: 3}, ""},
		{"IFEQ NX", setCommand{conditional: true}, ""},
		{"ifdne d EXAT 1700000007 GET", setCommand{conditional: true, get: true, ttl: 7000, absoluteAt: 5}, ""},
		{"IFEQ v NONSENSE", setCommand{conditional: true}, ""},
		{"IFNE v EX 0", setCommand{conditional: true}, ""},

		{"NX XX", setCommand{}, wire.ErrSyntax},
		{"XX NX", setCommand{}, wire.ErrSyntax},
		{"EX", setCommand{}, wire.ErrSyntax},
		{"EX 5 PX 5", setCommand{}, wire.ErrSyntax},
		{"KEEPTTL EX 5", setCommand{}, wire.ErrSyntax},
		{"EX 5 KEEPTTL", setCommand{}, wire.ErrSyntax},
		{"IFEQ", setCommand{}, wire.ErrSyntax},
		{"PERSIST", setCommand{}, wire.ErrSyntax},
		{"NONSENSE IFEQ v", setCommand{}, wire.ErrSyntax},
		{"EX five NONSENSE", setCommand{}, wire.ErrSyntax},
		{"EX five", setCommand{}, wire.ErrNotInteger},
		{"EX 1.5", setCommand{}, wire.ErrNotInteger},
		{"EX 0", setCommand{}, invalid},
		{"PX -1", setCommand{}, invalid},
		{"EXAT 0", setCommand{}, invalid},
		{"EX 9223372036854776", setCommand{}, invalid},
		{"PX 9223372036854775807", setCommand{}, invalid},
	} {
		args := fakeLockerCall("SET k v " + row.options).Args
		got, reply := parseSet(args, parseNow)
		if reply != row.reply || reply == "" && got.comparable() != row.want.comparable() {
			t.Errorf("SET k v %s: %+v, %q; want %+v, %q", row.options, got, reply, row.want, row.reply)
		}
	}
}

// comparable leaves out the fields that mean nothing for a conditional command.
func (c setCommand) comparable() setCommand {
	if c.conditional && c.absoluteAt == 0 {
		c.ttl = 0
	}
	return c
}

func TestParseSetEXAndGetEX(t *testing.T) {
	if c, reply := parseSetEX("setex", fakeLockerCall("SETEX k 5 v").Args, parseNow); reply != "" || c != (setCommand{ttl: 5000}) {
		t.Errorf("SETEX: %+v, %q", c, reply)
	}
	if c, reply := parseSetEX("psetex", fakeLockerCall("PSETEX k 5 v").Args, parseNow); reply != "" || c != (setCommand{ttl: 5}) {
		t.Errorf("PSETEX: %+v, %q", c, reply)
	}
	for options, want := range map[string]setCommand{
		"":                   {},
		"EX 5":               {ttl: 5000},
		"px 2":               {ttl: 2},
		"PX 0":               {},
		"PERSIST":            {},
		"EXAT 1700000001":    {ttl: 1000, absoluteAt: 2},
		"pxat 1":             {over: true, absoluteAt: 2},
		"EXAT 0":             {},
		"EXAT x":             {},
		"EXAT":               {},
		"EXAT 1 PERSIST":     {},
		"EXAT 1 EXAT 1":      {},
		"NONSENSE NONSENSE":  {},
		"PXAT 1700000000001": {ttl: 1, absoluteAt: 2},
	} {
		if got := parseGetEX(fakeLockerCall("GETEX k "+options).Args, parseNow); got != want {
			t.Errorf("GETEX k %s: %+v, want %+v", options, got, want)
		}
	}
}

// TestRelativeLeavesTheCommandAlone: the session owns the arguments, so relative must
// not change them.
func TestRelativeLeavesTheCommandAlone(t *testing.T) {
	args := fakeLockerCall("SET k v XX EXAT 1700000007 GET").Args
	before := fmt.Sprintf("%s", args)
	c, _ := parseSet(args, parseNow)
	if got := fmt.Sprintf("%s", c.relative(args)); got != "[SET k v XX PX 7000 GET]" {
		t.Errorf("made relative: %s", got)
	}
	if after := fmt.Sprintf("%s", args); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

func TestLockTTL(t *testing.T) {
	for milliseconds, want := range map[int64]time.Duration{
		0:              0,
		1:              time.Millisecond,
		86_400_000:     24 * time.Hour,
		math.MaxInt64:  longestTTL,
		31557600000000: longestTTL,
	} {
		if got := lockTTL(milliseconds); got != want {
			t.Errorf("%d ms: %v, want %v", milliseconds, got, want)
		}
	}
}

func FuzzParseSet(f *testing.F) {
	for _, seed := range []string{"NX PX 10", "EXAT 1700000007 XX GET", "IFEQ a KEEPTTL", "PXAT 9223372036854775807", "EX 9223372036854776", "NX\x00 GET EX", "PXAT -1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, options string) {
		args := [][]byte{[]byte("SET"), []byte("k"), []byte("v")}
		for word := range strings.SplitSeq(options, " ") {
			args = append(args, []byte(word))
		}
		c, reply := parseSet(args, parseNow)
		if reply != "" && reply != wire.ErrSyntax && reply != wire.ErrNotInteger && reply != errorExpireTime("set") {
			t.Errorf("%q: unknown error %q", options, reply)
		}
		lower := slices.Clone(args)
		for i := range lower[3:] {
			lower[3+i] = bytes.ToLower(args[3+i])
		}
		if again, replyAgain := parseSet(lower, parseNow); again != c || replyAgain != reply {
			t.Errorf("%q: %+v, %q; in lower case %+v, %q", options, c, reply, again, replyAgain)
		}
		if reply != "" || c.conditional {
			return
		}
		if c.onlyAbsent && c.onlyPresent || c.ttl < 0 || c.ttl > 0 && (c.keepTTL || c.over) {
			t.Errorf("%q: contradiction in %+v", options, c)
		}
		// Relative, it is the same command without an absolute time.
		same, reply := parseSet(c.relative(args), parseNow)
		if !c.over && c.absoluteAt > 0 {
			c.absoluteAt, c.ttl = 0, lockTTL(c.ttl).Milliseconds()
		}
		if reply != "" || same != c {
			t.Errorf("%q: relative %+v, %q; want %+v", options, same, reply, c)
		}
	})
}
