package ballot

import (
	"testing"

	"redlock-proxy/redlock/resp"
)

// The same error in reply to a client's own command is no answer either.
func TestARefusalIsNoAnswerToACommand(t *testing.T) {
	for _, reply := range []string{
		"-NOREPLICAS Not enough good replicas to write.\r\n",
		"-ERR The user executing the script can't run this command or subcommand script: f, on @user_script:1.\r\n",
		"-ERR Error running script (call to f): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.\r\n",
	} {
		if !resp.CannotServe([]byte(reply)) || !resp.CannotServeInside([]byte(reply)) {
			t.Errorf("%q is an answer", reply)
		}
	}
	for reply, want := range map[string]error{
		"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n":                                                       nil,
		"-WRONGTYPE Operation against a key holding the wrong kind of value script: f, on @user_script:3.\r\n":                         nil,
		"-ERR Error running script (call to f): @user_script:3: WRONGTYPE Operation against a key holding the wrong kind of value\r\n": nil,
		"-ERR what nobody has heard of\r\n":                  ErrUnable,
		"-NOREPLICAS Not enough good replicas to write.\r\n": ErrUnable,
		":1\r\n": nil,
	} {
		if got := OwnAs([]byte(reply), true); got != want {
			t.Errorf("%q: %v", reply, got)
		}
	}
	for _, fits := range []bool{true, false} {
		if one, own := ReadAs([]byte(":1\r\n"), fits) == nil, OwnAs([]byte(":1\r\n"), fits) == nil; one != fits || own != fits {
			t.Errorf("a reply that fits (%v) is read: %v and %v", fits, one, own)
		}
	}
	if VoteOf(true) != Granted || VoteOf(false) != Refused {
		t.Errorf("yes is %v, and no is %v", VoteOf(true), VoteOf(false))
	}
}
