package rig

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/child"

	"github.com/redis/go-redis/v9"
)

// Server is a real redis-server without persistence. After a crash it comes back empty.
type Server struct {
	Name   string
	Binary string // redis-server, or another server with its protocol
	Port   int
	dir    string
	Config []string // more directives, as words of the command line
	Clock  *Clock   // nil: the machine's clock
	Proc   *child.Process
	Direct *redis.Client // for tests to look at the server; not under test
}

// StartServer starts a server that is stopped when the test ends.
func StartServer(t testing.TB, name string, config ...string) *Server {
	t.Helper()
	r := NewServer(t, name, config...)
	r.Start(t)
	return r
}

// NewServer prepares a server that is not started yet.
func NewServer(t testing.TB, name string, config ...string) *Server {
	t.Helper()
	r := &Server{Name: name, Binary: "redis-server", Port: FreePort(t), dir: t.TempDir(), Config: config}
	r.Direct = redis.NewClient(&redis.Options{
		Addr: r.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	t.Cleanup(func() {
		r.Direct.Close()
		if r.Proc != nil {
			r.Proc.Kill()
		}
	})
	return r
}

func (r *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)) }
func (r *Server) URL() string  { return "redis://" + r.Addr() }

// Start starts the server, empty, on its port. It returns when the server answers PING.
func (r *Server) Start(t testing.TB) {
	t.Helper()
	r.Launch(t)
	WaitFor(t, r.Name+" serves", func() error {
		if !r.Proc.Running() {
			t.Fatalf("%s ended:\n%s", r.Name, r.Proc.Log.Tail(20))
		}
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		return r.Direct.Ping(ctx).Err()
	})
}

// Launch is Start, but does not wait until the server answers.
func (r *Server) Launch(t testing.TB) {
	t.Helper()
	proc, err := child.StartRedis(r.Name, r.Clock.command(r.Binary), r.dir,
		append([]string{"--port", strconv.Itoa(r.Port), "--bind", "127.0.0.1"}, r.Config...)...)
	if err != nil {
		t.Fatal(err)
	}
	r.Proc = proc
}

// Pause stops the process. Its sockets stay open and accept bytes, but nothing answers.
func (r *Server) Pause()  { r.Proc.Signal(syscall.SIGSTOP) }
func (r *Server) Resume() { r.Proc.Signal(syscall.SIGCONT) }

// Kill kills the server without a clean shutdown. Its contents are lost.
func (r *Server) Kill() { r.Proc.Kill() }

// Value returns the value of a string key, and whether the key exists.
func (r *Server) Value(t testing.TB, key string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	value, err := r.Direct.Get(ctx, key).Result()
	if err == redis.Nil {
		return "", false
	}
	if err != nil {
		t.Fatalf("GET %s on %s: %v", key, r.Name, err)
	}
	return value, true
}

// stateScript describes a key in one canonical form. Equal texts mean equal contents,
// whatever encoding and order the server has.
const stateScript = `
local key = KEYS[1]
local kind = redis.call('TYPE', key).ok
local lines = {}
local function pairsOf(list)
  for i = 1, #list, 2 do lines[#lines + 1] = cjson.encode({list[i], list[i + 1]}) end
  table.sort(lines)
end
if kind == 'string' then lines = {redis.call('GET', key)}
elseif kind == 'list' then lines = redis.call('LRANGE', key, 0, -1)
elseif kind == 'set' then lines = redis.call('SMEMBERS', key); table.sort(lines)
elseif kind == 'hash' then pairsOf(redis.call('HGETALL', key))
elseif kind == 'zset' then pairsOf(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'))
elseif kind == 'stream' then lines = {cjson.encode(redis.call('XRANGE', key, '-', '+'))}
end
return {kind, table.concat(lines, '\n'), redis.call('PTTL', key)}`

// KeyState is the state of one key on one server. ttl is PTTL's answer, in milliseconds.
type KeyState struct {
	Kind, Contents string
	ttl            int64
}

func (s KeyState) String() string {
	return fmt.Sprintf("%s %q, %d ms left", s.Kind, s.Contents, s.ttl)
}

// Matches tells whether two servers have the same state of a key. The times to live may
// differ by RemainingTolerance, because the commands reached the servers at two times.
func (s KeyState) Matches(other KeyState) bool {
	if s.Kind != other.Kind || s.Contents != other.Contents {
		return false
	}
	if s.ttl < 0 || other.ttl < 0 {
		return s.ttl == other.ttl
	}
	return max(s.ttl-other.ttl, other.ttl-s.ttl) <= RemainingTolerance.Milliseconds()
}

func (r *Server) States(ctx context.Context, keys []string) (map[string]KeyState, error) {
	pipe := r.Direct.Pipeline()
	replies := make(map[string]*redis.Cmd, len(keys))
	for _, key := range keys {
		replies[key] = pipe.Eval(ctx, stateScript, []string{key})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("reading the keys of %s: %w", r.Name, err)
	}
	states := make(map[string]KeyState, len(keys))
	for key, reply := range replies {
		fields, err := reply.Slice()
		if err != nil || len(fields) != 3 {
			return nil, fmt.Errorf("reading %q of %s: %v %w", key, r.Name, fields, err)
		}
		states[key] = KeyState{fields[0].(string), fields[1].(string), fields[2].(int64)}
	}
	return states, nil
}

// RemainingTolerance is the largest accepted difference between two times to live.
const RemainingTolerance = 5 * time.Second
