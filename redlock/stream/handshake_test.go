package stream

import (
	"testing"

	"redlock-proxy/redlock/resp"
)

// A server that does not know AUTH, or is no Redis, may repeat what was sent.
func TestAbsenceHasNoPasswords(t *testing.T) {
	for reply, want := range map[string]string{
		"-WRONGPASS invalid username-password pair or user is disabled.\r\n": "AUTH refused: WRONGPASS",
		"-ERR max number of clients reached\r\n":                             "AUTH refused: ERR max number of clients reached",
		"-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n": "AUTH refused: ERR AUTH <password> called without any password configured for the default user",
		"-ERR unknown command 'AUTH', with args beginning with: 'hush' \r\n":                                                                "AUTH refused: ERR unknown command",
		"-ERR unknown command `AUTH`, with args beginning with: `p`, `hus`, \r\n":                                                           "AUTH refused: ERR unknown command",
		"-ERR what is hush\r\n":            "AUTH refused: ERR",
		"!17\r\nERR what is hush?\r\n\r\n": "AUTH refused: ERR",
		"-HUSH\r\n":                        "AUTH refused",
		"-hush ERR\r\n":                    "AUTH refused",
	} {
		if got := turnedAway("AUTH", []byte(reply)).Error(); got != want {
			t.Errorf("%q: %q", reply, got)
		}
	}
}

// What a server says about itself may be anything.
func FuzzGreeting(f *testing.F) {
	for _, text := range []string{"run_id:x\r\nrole:master\r\nredis_mode:standalone\r\n", "role:slave\r\n", "*3\r\n", ""} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		bulk := resp.AppendBulk(nil, text)
		_ = readGreeting([][]byte{[]byte(text), bulk, bulk, []byte(text)})
	})
}
