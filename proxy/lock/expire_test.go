package lock

import (
	"fmt"
	"math"
	"testing"

	"redlock-proxy/proxy/wire"
)

func TestParseExpire(t *testing.T) {
	const now = 1_700_000_000_000
	for _, row := range []struct {
		Command string
		want    options
		reply   wire.Error
	}{
		{"EXPIRE k 5", options{ttl: 5000}, ""},
		{"PEXPIRE k 5", options{ttl: 5}, ""},
		{"EXPIRE k 0", options{over: true}, ""},
		{"EXPIRE k -5", options{over: true}, ""},
		{"EXPIREAT k 1700000005", options{ttl: 5000, timeAt: 2}, ""},
		{"PEXPIREAT k 1700000000005", options{ttl: 5, timeAt: 2}, ""},
		{"PEXPIREAT k -9223372036854775808", options{over: true, timeAt: 2}, ""},
		{"PEXPIREAT k 9223372036854775807", options{ttl: math.MaxInt64 - now, timeAt: 2}, ""},
		{"EXPIRE k 5 nx", options{ttl: 5000, expires: "NX"}, ""},
		{"EXPIRE k 5 XX XX", options{ttl: 5000, expires: "XX"}, ""},
		{"EXPIRE k 5 gt XX", options{ttl: 5000, expires: "GT"}, ""},
		{"EXPIRE k 5 LT", options{ttl: 5000, expires: "LT"}, ""},
		{"EXPIRE k 5 XX LT", options{ttl: 5000, expires: "LT", bothXXLT: true}, ""},
		{"EXPIRE k 5 NX XX", options{}, errorExpireNX},
		{"EXPIRE k x GT LT", options{}, errorExpireGTLT},
		{"EXPIRE k x GT LT NX", options{}, errorExpireNX},
		{"EXPIRE k x FOO NX XX", options{}, "-ERR Unsupported option FOO\r\n"},
		{"EXPIRE k x", options{}, wire.ErrNotInteger},
		{"EXPIRE k 9223372036854776", options{}, errorExpireTime("expire")},
		{"EXPIREAT k -9223372036854776", options{}, errorExpireTime("expireat")},
		{"PEXPIRE k 9223372036854775807", options{}, errorExpireTime("pexpire")},
	} {
		got, reply := fakeLockerCall(row.Command).options(parseNow)
		if reply != row.reply || reply == "" && got != row.want {
			t.Errorf("%s: %+v, %q; want %+v, %q", row.Command, got, reply, row.want, row.reply)
		}
	}
}

func TestExpireRelative(t *testing.T) {
	for command, want := range map[string]string{
		"EXPIREAT k 1700000005 XX LT":     "[PEXPIRE k 5000 XX LT]",
		"pexpireat k 1700000000005 XX LT": "[PEXPIRE k 5 XX LT]",
		"EXPIREAT k 5 LT":                 "[EXPIREAT k 1 LT]",
		"PEXPIREAT k 9223372036854775807": "[PEXPIRE k 3153600000000]", // no master's clock makes that too long
		"EXPIRE k 5 XX LT":                "[EXPIRE k 5 XX LT]",
	} {
		call := fakeLockerCall(command)
		args := call.Args
		c, _ := call.options(parseNow)
		if got := fmt.Sprintf("%s", c.relative(args)); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
		if after := fmt.Sprintf("%s", args); after != "["+command+"]" {
			t.Errorf("%s became %s", command, after)
		}
	}
}

// TestExpireOptionOnOneLine: the error quotes an option as a C string and without line
// ends.
func TestExpireOptionOnOneLine(t *testing.T) {
	args := [][]byte{[]byte("EXPIRE"), []byte("k"), []byte("1"), []byte("a\r\nb\r\n\x00c")}
	if _, reply := optionsOf(args, parseNow); reply != "-ERR Unsupported option a  b\r\n" {
		t.Errorf("reply %q", reply)
	}
}
