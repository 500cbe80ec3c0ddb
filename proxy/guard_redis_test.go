package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/child"
	"redlock-proxy/redlock/resp"
)

// TestGuardAgreesWithRedis sends every input, cut at every place, to a Redis
// server and compares what it answers with the guard's reading.
func TestGuardAgreesWithRedis(t *testing.T) {
	open := startGuardRedis(t)
	locked := startGuardRedis(t, "--requirepass", guardPassword)
	for _, input := range guardInputs() {
		server := open
		if input.locked {
			server = locked
		}
		server.compare(t, input, cuts(input.bytes))
	}
}

// TestGuardAgreesWithRedisOnDamagedInput does the same with inputs of which a
// few bytes were changed, dropped or doubled, always the same ones.
func TestGuardAgreesWithRedisOnDamagedInput(t *testing.T) {
	server := startGuardRedis(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, input := range guardInputs() {
		if len(input.bytes) > 1000 || input.locked {
			continue
		}
		for range 20 {
			damaged := []byte(input.bytes)
			for range 1 + random.IntN(3) {
				at := random.IntN(len(damaged) + 1)
				switch random.IntN(3) {
				case 0:
					const meaningful = "\r\n\x00*$-0123 \t\v\"'\\xaP"
					damaged = slices.Insert(damaged, at, meaningful[random.IntN(len(meaningful))])
				case 1:
					damaged = slices.Delete(damaged, at, min(at+1+random.IntN(2), len(damaged)))
				case 2:
					end := min(at+random.IntN(8), len(damaged))
					damaged = slices.Insert(damaged, at, bytes.Clone(damaged[at:end])...)
				}
			}
			server.compare(t, guardInput{bytes: string(damaged)}, []int{random.IntN(len(damaged) + 1)})
		}
	}
}

// compare sends an input, cut at the given places. The server's raw answer must
// be what it answers to the guard's commands written properly, then the guard's
// error, if any, and the end of the connection.
func (s *guardRedis) compare(t *testing.T, input guardInput, cuts []int) {
	t.Helper()
	got := feed(t, newTestGuard(input.locked), []byte(input.bytes))
	want := []byte(input.answer)
	if input.answer == "" {
		var proper []byte
		for _, args := range got.commands {
			proper = append(proper, encodeCommand(args...)...)
		}
		want = s.exchange(t, proper, nil, false)
	}
	want = append(want, got.refusal()...)
	for _, cut := range cuts {
		answer := s.exchange(t, []byte(input.bytes[:cut]), []byte(input.bytes[cut:]), got.err != nil)
		if !bytes.Equal(answer, want) {
			t.Errorf("%.100q cut at %d: Redis answers %.300q, the guard's reading is worth %.300q", input.bytes, cut, answer, want)
			return
		}
	}
}

type guardRedis struct {
	socket  string
	control *net.UnixConn
}

func startGuardRedis(t *testing.T, args ...string) *guardRedis {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("this test compares with a real server: %v", err)
	}
	dir, err := os.MkdirTemp("", "guard") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server := &guardRedis{socket: filepath.Join(dir, "s")}
	process := exec.Command(binary, append([]string{"--port", "0", "--unixsocket", server.socket, "--dir", dir, "--save", "", "--appendonly", "no"}, args...)...)
	child.EndWithParent(process)
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	var log strings.Builder
	lines := bufio.NewScanner(output)
	for !strings.Contains(log.String(), "eady to accept connections") {
		if !lines.Scan() {
			t.Fatalf("redis-server ended:\n%s", log.String())
		}
		log.WriteString(lines.Text() + "\n")
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	control := server.dial(t)
	t.Cleanup(func() { _ = control.Close() })
	server.control = control
	server.ask(t, "AUTH "+guardPassword) // an error where none is asked for
	return server
}

func (s *guardRedis) dial(t *testing.T) *net.UnixConn {
	t.Helper()
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.UnixConn)
}

// settle returns when the server has read what was written to it before, for
// one thread serves all its sockets in the order in which they became readable.
// It tells how many connections the server has, control included.
func (s *guardRedis) settle(t *testing.T) (connections int) {
	t.Helper()
	return strings.Count(s.ask(t, "CLIENT LIST"), "id=")
}

// ask sends a command on the control connection and returns the reply.
func (s *guardRedis) ask(t *testing.T, line string) string {
	t.Helper()
	_ = s.control.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(s.control, line+"\r\n"); err != nil {
		t.Fatal(err)
	}
	var reply []byte
	var scanner resp.Scanner
	for buf := make([]byte, 4096); ; {
		n, err := s.control.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		reply = append(reply, buf[:n]...)
		if _, done, err := scanner.Scan(buf[:n]); err != nil {
			t.Fatal(err)
		} else if done {
			return string(reply)
		}
	}
}

// exchange sends an input in two parts and returns all that the server answers
// until it closes the connection: by itself if hangsUp, otherwise only after we
// have.
func (s *guardRedis) exchange(t *testing.T, first, second []byte, hangsUp bool) []byte {
	t.Helper()
	conn := s.dial(t)
	defer func() { _ = conn.Close() }()
	connections := 0
	for _, part := range [][]byte{first, second} {
		// Writing to a server that hung up fails, as it may.
		if _, err := conn.Write(part); err != nil && !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err)
		}
		connections = s.settle(t)
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

// client is go-redis's, for what has to be read as values.
func (s *guardRedis) client(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// commands is the server's reply to COMMAND.
func (s *guardRedis) commands(t *testing.T) []any {
	t.Helper()
	reply, err := s.client(t).Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// answers sends commands in one pipeline and returns what is said to each: a
// value or an error.
func (s *guardRedis) answers(t *testing.T, commands [][][]byte) []any {
	t.Helper()
	pipe := s.client(t).Pipeline()
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
