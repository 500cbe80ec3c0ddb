package upstream

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/wire"
)

// The state that a client has set is sent on each new connection, within its share of memory.
func TestClientState(t *testing.T) {
	used, most := 0, 20
	c := NewClientState(func(n int) bool {
		if n > 0 && used+n > most {
			return false
		}
		used += n
		return true
	}, 3)
	perform := func(line, want string) {
		t.Helper()
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		if reply := c.Perform("client|"+strings.ToLower(string(args[1])), args); string(reply) != want {
			t.Errorf("%s: %q, want %q", line, reply, want)
		}
	}
	perform("CLIENT GETNAME", "$-1\r\n")
	perform("CLIENT SETNAME worker", wire.OK)
	perform("CLIENT GETNAME", "$6\r\nworker\r\n")
	perform("CLIENT SETINFO lib-name lettuce", wire.OK)
	perform("CLIENT SETINFO LIB-NAME jedis", wire.OK)
	perform("CLIENT SETINFO lib-size 1", "-ERR Unrecognized option 'lib-size'\r\n")
	perform("CLIENT SETINFO lib-ver "+strings.Repeat("9", 20), string(wire.ErrMemory))
	perform("CLIENT NO-EVICT ON", wire.OK)
	perform("CLIENT NO-TOUCH maybe", string(wire.ErrSyntax))
	before := c
	if !c.SetName([]byte("a")) || used != len("jedis")+1 {
		t.Errorf("%d bytes are taken", used)
	}
	most = 8 // another client has taken the rest meanwhile
	c.Restore(before, func(n int) { used += n })
	if c.Name != "worker" || used != len("jedis")+len("worker") {
		t.Errorf("name %q, %d bytes are taken", c.Name, used)
	}
	want := ClientSettings{DB: 3, Name: "worker", LibName: "jedis", NoEvict: true}
	if login := c.Login(); login.ClientSettings != want {
		t.Errorf("login %+v", login)
	}
	if c.Release(); used != 0 {
		t.Errorf("%d bytes are taken after Release", used)
	}
}
