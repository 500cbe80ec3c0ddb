package lock

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

var parseNow = time.UnixMilli(1_700_000_000_000)

func optionsOf(args [][]byte, now time.Time) (options, wire.Error) {
	return Command{Args: args, Route: route.Route{Spec: route.Builtin().Lookup(args)}}.options(now)
}

func TestParseSet(t *testing.T) {
	invalid := errorExpireTime("set")
	for _, row := range []struct {
		words string
		want  options
		reply wire.Error
	}{
		{"", options{}, ""},
		{"NX PX 10", options{onlyAbsent: true, ttl: 10}, ""},
		{"PX 10 NX", options{onlyAbsent: true, ttl: 10}, ""},
		{"px 10 nx", options{onlyAbsent: true, ttl: 10}, ""},
		{"nX eX 2 gEt", options{onlyAbsent: true, get: true, ttl: 2000}, ""},
		{"XX KEEPTTL", options{onlyPresent: true, keepTTL: true}, ""},
		{"GET GET", options{get: true}, ""},
		{"NX NX", options{onlyAbsent: true}, ""},
		{"EX 5 EX 7", options{ttl: 7000}, ""},
		{"PX 31557600000000 NX", options{onlyAbsent: true, ttl: 31557600000000}, ""},
		{"EXAT 1700000007", options{ttl: 7000, unitAt: 3, timeAt: 4}, ""},
		{"XX PXAT 1700000000001", options{onlyPresent: true, ttl: 1, unitAt: 4, timeAt: 5}, ""},
		{"NX PXAT 1700000000000", options{onlyAbsent: true, over: true, unitAt: 4, timeAt: 5}, ""},
		{"PXAT 9223372036854775807", options{ttl: math.MaxInt64 - 1_700_000_000_000, unitAt: 3, timeAt: 4}, ""},
		{"IFEQ NX", options{conditional: true}, ""},
		{"ifdne d EXAT 1700000007 GET", options{conditional: true, get: true, ttl: 7000, unitAt: 5, timeAt: 6}, ""},
		{"IFDEQ d", options{conditional: true}, ""},
		{"IFEQ v NONSENSE", options{conditional: true}, ""},
		{"IFNE v EX 0", options{conditional: true}, ""},

		{"NX XX", options{}, wire.ErrSyntax},
		{"XX NX", options{}, wire.ErrSyntax},
		{"EX", options{}, wire.ErrSyntax},
		{"EX 5 PX 5", options{}, wire.ErrSyntax},
		{"KEEPTTL EX 5", options{}, wire.ErrSyntax},
		{"EX 5 KEEPTTL", options{}, wire.ErrSyntax},
		{"IFEQ", options{}, wire.ErrSyntax},
		{"PERSIST", options{}, wire.ErrSyntax},
		{"NONSENSE IFEQ v", options{}, wire.ErrSyntax},
		{"EX five NONSENSE", options{}, wire.ErrSyntax},
		{"EX five", options{}, wire.ErrNotInteger},
		{"EX 1.5", options{}, wire.ErrNotInteger},
		{"EX 0", options{}, invalid},
		{"PX -1", options{}, invalid},
		{"EXAT 0", options{}, invalid},
		{"EX 9223372036854776", options{}, invalid},
		{"PX 9223372036854775807", options{}, invalid},
	} {
		got, reply := fakeLockerCall("SET k v " + row.words).options(parseNow)
		if reply != row.reply || reply == "" && got.comparable() != row.want.comparable() {
			t.Errorf("SET k v %s: %+v, %q; want %+v, %q", row.words, got, reply, row.want, row.reply)
		}
	}
}

// comparable leaves out the fields that mean nothing for a conditional command.
func (c options) comparable() options {
	if c.conditional && c.timeAt == 0 {
		c.ttl = 0
	}
	return c
}

func TestParseSetEXAndGetEX(t *testing.T) {
	if c, reply := fakeLockerCall("SETEX k 5 v").options(parseNow); reply != "" || c != (options{ttl: 5000}) {
		t.Errorf("SETEX: %+v, %q", c, reply)
	}
	if c, reply := fakeLockerCall("PSETEX k 5 v").options(parseNow); reply != "" || c != (options{ttl: 5}) {
		t.Errorf("PSETEX: %+v, %q", c, reply)
	}
	for words, want := range map[string]options{
		"":                   {},
		"EX 5":               {ttl: 5000},
		"px 2":               {ttl: 2},
		"PX 0":               {},
		"PERSIST":            {},
		"EXAT 1700000001":    {ttl: 1000, unitAt: 2, timeAt: 3},
		"pxat 1":             {over: true, unitAt: 2, timeAt: 3},
		"EXAT 0":             {},
		"EXAT x":             {},
		"EXAT":               {},
		"EXAT 1 PERSIST":     {},
		"EXAT 1 EXAT 1":      {},
		"NONSENSE NONSENSE":  {},
		"PXAT 1700000000001": {ttl: 1, unitAt: 2, timeAt: 3},
	} {
		if got, _ := fakeLockerCall("GETEX k " + words).options(parseNow); got != want {
			t.Errorf("GETEX k %s: %+v, want %+v", words, got, want)
		}
	}
}

// TestRelativeLeavesTheCommandAlone: the session owns the arguments, so relative must
// not change them.
func TestRelativeLeavesTheCommandAlone(t *testing.T) {
	call := fakeLockerCall("SET k v XX EXAT 1700000007 GET")
	args := call.Args
	before := fmt.Sprintf("%s", args)
	c, _ := call.options(parseNow)
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
