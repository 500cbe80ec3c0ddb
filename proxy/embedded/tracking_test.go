package embedded

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// A client that tracks keys is told after each write of any client that all keys may have
// changed, and never within a reply. Nobody is told after a read.
func TestEmbeddedTracking(t *testing.T) {
	server := startTestEmbedded(t)
	dial := func() (ask func(command string, replies ...string)) {
		conn, err := net.Dial("tcp", server.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		reader := bufio.NewReader(conn)
		return func(command string, replies ...string) {
			t.Helper()
			if words := strings.Fields(command); len(words) > 0 {
				fmt.Fprintf(conn, "*%d\r\n", len(words))
				for _, word := range words {
					fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(word), word)
				}
			}
			want := strings.Join(replies, "")
			got := make([]byte, len(want))
			if _, err := io.ReadFull(reader, got); err != nil || string(got) != want {
				t.Fatalf("%s: %q, %v; want %q", command, got, err, want)
			}
		}
	}
	const changed = ">2\r\n$10\r\ninvalidate\r\n_\r\n"
	ask, other := dial(), dial()
	ask("CLIENT TRACKING", "-ERR syntax error\r\n")
	ask("CLIENT TRACKING ON REDIRECT 3", "-ERR the embedded server knows CLIENT TRACKING without REDIRECT only\r\n")
	ask("HELLO 3 SETNAME me", "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n"+
		"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n")
	ask("CLIENT TRACKING ON OPTIN", "+OK\r\n")
	ask("GET k", "_\r\n")
	other("GET k", "$-1\r\n")
	ask("ECHO end", "$3\r\nend\r\n")
	ask("", changed) // ECHO is no command on keys, so it counts as one that may write
	other("SET k v", "+OK\r\n")
	ask("", changed)
	ask("CLIENT TRACKING OFF", "+OK\r\n")
	other("SET k v", "+OK\r\n")
	ask("GET k", "$1\r\nv\r\n")
	ask("CLIENT TRACKING ON", "+OK\r\n")
	other("EVAL return(redis.call('SET','k','w')) 0", "+OK\r\n")
	ask("", changed)
}
