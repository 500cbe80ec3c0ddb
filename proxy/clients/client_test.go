package clients

import (
	"testing"

	"redlock-proxy/proxy/wire"
)

// fakeSession is one whose users the upstream has. It has what the upstream replies.
type fakeSession struct {
	Session
	refusal wire.Error
	reply   string
	ended   bool
}

func (f *fakeSession) UsersAtUpstream() bool { return true }

func (f *fakeSession) TryOpen() wire.Error { return f.refusal }

func (f *fakeSession) Ask([]byte) ([]byte, bool) {
	if f.ended {
		return nil, false
	}
	return []byte(f.reply), true
}

// Nobody gets a right while the upstream cannot say who has it.
func TestLacksRight(t *testing.T) {
	for name, row := range map[string]struct {
		session fakeSession
		want    wire.Error
	}{
		"it has the right":                 {fakeSession{reply: ":0\r\n"}, ""},
		"an old server knows no LIST ID":   {fakeSession{reply: "-ERR syntax error\r\n"}, ""},
		"it lacks the right":               {fakeSession{reply: "-NOPERM no\r\n"}, "-NOPERM no\r\n"},
		"the upstream loads":               {fakeSession{reply: "-LOADING wait\r\n"}, "-LOADING wait\r\n"},
		"the upstream cannot be reached":   {fakeSession{refusal: wire.ErrUpstreamDown}, wire.ErrUpstreamDown},
		"the upstream is full":             {fakeSession{refusal: "-ERR max number of clients reached\r\n"}, "-ERR max number of clients reached\r\n"},
		"the connection to it breaks then": {fakeSession{ended: true}, wire.ErrUpstreamDown},
	} {
		c := &Client{session: &row.session}
		if got := c.LacksRight("KILL"); got != row.want {
			t.Errorf("%s: %q, not %q", name, got, row.want)
		}
	}
}
