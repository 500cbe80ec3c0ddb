package lock

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"redlock-proxy/proxy/wire"
)

func TestParseExpire(t *testing.T) {
	const now = 1_700_000_000_000
	for _, row := range []struct {
		Command string
		want    expireCommand
		reply   wire.Error
	}{
		{"EXPIRE k 5", expireCommand{ttl: 5000}, ""},
		{"PEXPIRE k 5", expireCommand{ttl: 5}, ""},
		{"EXPIRE k 0", expireCommand{ttl: 0}, ""},
		{"EXPIRE k -5", expireCommand{ttl: -5000}, ""},
		{"EXPIREAT k 1700000005", expireCommand{ttl: 5000, absolute: true}, ""},
		{"PEXPIREAT k 1700000000005", expireCommand{ttl: 5, absolute: true}, ""},
		{"PEXPIREAT k -9223372036854775808", expireCommand{ttl: -now, absolute: true}, ""},
		{"PEXPIREAT k 9223372036854775807", expireCommand{ttl: math.MaxInt64 - now, absolute: true}, ""},
		{"EXPIRE k 5 nx", expireCommand{ttl: 5000, condition: "NX"}, ""},
		{"EXPIRE k 5 XX XX", expireCommand{ttl: 5000, condition: "XX"}, ""},
		{"EXPIRE k 5 gt XX", expireCommand{ttl: 5000, condition: "GT"}, ""},
		{"EXPIRE k 5 LT", expireCommand{ttl: 5000, condition: "LT"}, ""},
		{"EXPIRE k 5 XX LT", expireCommand{ttl: 5000, condition: "LT", bothXXLT: true}, ""},
		{"EXPIRE k 5 NX XX", expireCommand{}, errorExpireNX},
		{"EXPIRE k x GT LT", expireCommand{}, errorExpireGTLT},
		{"EXPIRE k x GT LT NX", expireCommand{}, errorExpireNX},
		{"EXPIRE k x FOO NX XX", expireCommand{}, "-ERR Unsupported option FOO\r\n"},
		{"EXPIRE k x", expireCommand{}, wire.ErrNotInteger},
		{"EXPIRE k 9223372036854776", expireCommand{}, errorExpireTime("expire")},
		{"EXPIREAT k -9223372036854776", expireCommand{}, errorExpireTime("expireat")},
		{"PEXPIRE k 9223372036854775807", expireCommand{}, errorExpireTime("pexpire")},
	} {
		args := fakeLockerCall(row.Command).Args
		got, reply := parseExpire(strings.ToLower(string(args[0])), args, parseNow)
		if reply != row.reply || reply == "" && got != row.want {
			t.Errorf("%s: %+v, %q; want %+v, %q", row.Command, got, reply, row.want, row.reply)
		}
	}
}

func TestExpireRelative(t *testing.T) {
	for command, want := range map[string]string{
		"EXPIREAT k 1700000005 XX LT":     "[PEXPIRE k 5000 XX LT]",
		"pexpireat k 1700000000005 XX LT": "[PEXPIRE k 5 XX LT]",
		"EXPIREAT k 5 LT":                 "[PEXPIRE k 0 LT]",
		"PEXPIREAT k 9223372036854775807": "[PEXPIRE k 3153600000000]", // no master's clock makes that too long
		"EXPIRE k 5 XX LT":                "[EXPIRE k 5 XX LT]",
	} {
		args := fakeLockerCall(command).Args
		c, _ := parseExpire(strings.ToLower(string(args[0])), args, parseNow)
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
	if _, reply := parseExpire("expire", args, parseNow); reply != "-ERR Unsupported option a  b\r\n" {
		t.Errorf("reply %q", reply)
	}
}
