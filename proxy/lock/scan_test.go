package lock

import (
	"slices"
	"testing"

	"redlock-proxy/redlock"
)

// A scan of a lock key is one page with the cursor 0, whatever the masters' own cursors are.
func TestScansHaveOnePage(t *testing.T) {
	const empty = "*2\r\n$1\r\n0\r\n*0\r\n"
	replies := map[string]string{
		"HGETALL h":                "*4\r\n$2\r\nf1\r\n$1\r\n1\r\n$2\r\ng2\r\n$1\r\n2\r\n",
		"SMEMBERS s":               "*3\r\n$1\r\na\r\n$1\r\nb\r\n$2\r\nba\r\n",
		"ZRANGE z 0 -1 WITHSCORES": "*4\r\n$1\r\nm\r\n$1\r\n1\r\n$1\r\nn\r\n$3\r\n2.5\r\n",
		"HGETALL wrong":            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
	}
	p := newFakeLockerPlane(nil)
	p.locker.answer = func(request any) redlock.Outcome {
		var words string
		for i, arg := range request.(redlock.RunRequest).Args {
			if i > 0 {
				words += " "
			}
			words += string(arg)
		}
		reply, ok := replies[words]
		if !ok {
			reply = "*0\r\n"
		}
		return redlock.Outcome{Verdict: redlock.Won, Reply: []byte(reply)}
	}
	for line, want := range map[string]string{
		"HSCAN h 0":                             "*2\r\n$1\r\n0\r\n" + replies["HGETALL h"],
		"HSCAN h 0 COUNT 1":                     "*2\r\n$1\r\n0\r\n" + replies["HGETALL h"],
		"HSCAN h 0 MATCH g* COUNT 7":            "*2\r\n$1\r\n0\r\n*2\r\n$2\r\ng2\r\n$1\r\n2\r\n",
		"HSCAN h 0 NOVALUES":                    "*2\r\n$1\r\n0\r\n*2\r\n$2\r\nf1\r\n$2\r\ng2\r\n",
		"HSCAN h 0 novalues match f1":           "*2\r\n$1\r\n0\r\n*1\r\n$2\r\nf1\r\n",
		"HSCAN h 12":                            empty,
		"HSCAN h 18446744073709551615 MATCH f*": empty,
		"HSCAN none 0":                          empty,
		"HSCAN none 0 BOGUS":                    empty, // as in Redis
		"HSCAN h x":                             string(errorCursor),
		"HSCAN h -1":                            string(errorCursor),
		"HSCAN wrong 0 BOGUS":                   replies["HGETALL wrong"],
		"HSCAN h 0 BOGUS":                       "-ERR syntax error\r\n",
		"HSCAN h 0 MATCH":                       "-ERR syntax error\r\n",
		"HSCAN h 0 COUNT":                       "-ERR syntax error\r\n",
		"HSCAN h 0 COUNT 0":                     "-ERR syntax error\r\n",
		"HSCAN h 0 COUNT x":                     "-ERR value is not an integer or out of range\r\n",
		"SSCAN s 0 MATCH b*":                    "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$2\r\nba\r\n",
		"SSCAN s 0 NOVALUES":                    "-ERR syntax error\r\n",
		"SSCAN s 1":                             empty,
		"ZSCAN z 0":                             "*2\r\n$1\r\n0\r\n" + replies["ZRANGE z 0 -1 WITHSCORES"],
		"ZSCAN z 0 MATCH n COUNT 1":             "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nn\r\n$3\r\n2.5\r\n",
	} {
		if got := p.ask(t, line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if asked := p.locker.requests(); slices.ContainsFunc(asked, func(line string) bool { return line != "" && line[len(line)-len("readonly"):] != "readonly" }) {
		t.Errorf("asked %q", asked)
	}
	p.locker.answer = fakeLockerAnswers(fakeLockerNoQuorum)
	if got := p.ask(t, "HSCAN h 0"); got != "-"+fakeLockerNoQuorum.NoQuorumError()+" (deploy/INCIDENTS.md#quorumlost)\r\n" {
		t.Errorf("without a quorum: %q", got)
	}
}
