package proxytest

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/redlock/livetest"

	"github.com/redis/go-redis/v9"
)

// patience is the timeout for everything that must happen. Even a busy machine needs
// far less.
const patience = time.Minute

// Redis is a real Redis server. It ends with the test.
type Redis struct {
	Socket  string // the path of the server's socket
	control *livetest.Conn
}

// StartRedis starts a server on its own socket. args are added to the server's command
// line.
func StartRedis(t *testing.T, args ...string) *Redis {
	t.Helper()
	live := livetest.Start(t, args...)
	live.Do("AUTH", Password) // a server without a password answers with an error
	return &Redis{live.Socket, live.Conn}
}

// Dial connects to the server. The caller must close the connection.
func (s *Redis) Dial(t *testing.T) *net.UnixConn {
	t.Helper()
	conn, err := net.Dial("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.UnixConn)
}

// Settle returns when the server has read all that was written to it before. It relies
// on Redis's one thread, which serves the sockets in the order in which they become
// readable. It returns the number of the server's connections, including control.
func (s *Redis) Settle(t *testing.T) (connections int) {
	t.Helper()
	return strings.Count(s.Ask(t, "CLIENT LIST"), "id=")
}

// Ask sends a command on the control connection and returns the reply.
func (s *Redis) Ask(t *testing.T, line string) string {
	t.Helper()
	return string(s.control.Ask([]byte(line+"\r\n"), 1)[0])
}

// Exchange sends an input in two parts and returns the server's whole answer. If hangsUp
// is true, the server must close the connection itself. Otherwise Exchange closes its
// side first.
func (s *Redis) Exchange(t *testing.T, first, second []byte, hangsUp bool) []byte {
	t.Helper()
	conn := s.Dial(t)
	defer func() { _ = conn.Close() }()
	connections := 0
	for _, part := range [][]byte{first, second} {
		// The write may fail if the server has already closed the connection.
		if _, err := conn.Write(part); err != nil && !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err)
		}
		connections = s.Settle(t)
	}
	if !hangsUp {
		if connections != 2 {
			t.Errorf("after %.100q and %.100q Redis has %d connections, want 2", first, second, connections)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("after %.100q and %.100q Redis answered %.300q and did not close: %v", first, second, answer, err)
	}
	return answer
}

// Client returns a client of go-redis, for replies that a test reads as values. The test
// closes it when it ends.
func (s *Redis) Client(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Commands returns the server's reply to COMMAND.
func (s *Redis) Commands(t *testing.T) []any {
	t.Helper()
	reply, err := s.Client(t).Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// Answers sends commands in one pipeline and returns the answer to each: a value or an
// error.
func (s *Redis) Answers(t *testing.T, commands [][][]byte) []any {
	t.Helper()
	pipe := s.Client(t).Pipeline()
	for _, command := range commands {
		args := make([]any, len(command))
		for i, arg := range command {
			args[i] = arg
		}
		pipe.Do(t.Context(), args...)
	}
	sent, _ := pipe.Exec(t.Context()) // an error is an answer
	answers := make([]any, len(sent))
	for i, command := range sent {
		value, err := command.(*redis.Cmd).Result()
		if answers[i] = value; err != nil {
			answers[i] = err
		}
	}
	return answers
}
