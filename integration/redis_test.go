package integration

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"

	"redlock-proxy/integration/child"

	"github.com/redis/go-redis/v9"
)

// redisServer is a real redis-server without persistence: what is killed
// comes back empty.
type redisServer struct {
	name   string
	binary string // redis-server, or another that speaks its language
	port   int
	dir    string
	config []string      // further directives, each as one would write it on the command line
	clock  *jumpingClock // nil: the machine's own
	proc   *child.Process
	direct *redis.Client // for looking at it; not what is tested
}

// startRedis starts a server that is stopped when the test ends.
func startRedis(t testing.TB, name string, config ...string) *redisServer {
	t.Helper()
	r := newRedis(t, name, config...)
	r.start(t)
	return r
}

// newRedis prepares a server that is not started yet.
func newRedis(t testing.TB, name string, config ...string) *redisServer {
	t.Helper()
	r := &redisServer{name: name, binary: "redis-server", port: freePort(t), dir: t.TempDir(), config: config}
	r.direct = redis.NewClient(&redis.Options{
		Addr: r.addr(), MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	t.Cleanup(func() {
		r.direct.Close()
		if r.proc != nil {
			r.proc.Kill()
		}
	})
	return r
}

func (r *redisServer) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }
func (r *redisServer) url() string  { return "redis://" + r.addr() }

// start runs the server, empty, on its port, and returns when it serves.
func (r *redisServer) start(t testing.TB) {
	t.Helper()
	r.launch(t)
	waitFor(t, r.name+" serves", func() error {
		if !r.proc.Running() {
			t.Fatalf("%s ended:\n%s", r.name, r.proc.Log.Tail(20))
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return r.direct.Ping(ctx).Err()
	})
}

// launch is start, but does not wait until the server serves.
func (r *redisServer) launch(t testing.TB) {
	t.Helper()
	args := append(r.clock.command(r.binary),
		"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	)
	args = append(args, r.config...)
	proc, err := child.Start(r.name, args[0], args[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	r.proc = proc
}

// pause stops the process where it is: its sockets stay open and accept
// bytes, and nothing is answered.
func (r *redisServer) pause()  { r.proc.Signal(syscall.SIGSTOP) }
func (r *redisServer) resume() { r.proc.Signal(syscall.SIGCONT) }

// crash kills the server without a word; what it held is lost.
func (r *redisServer) crash() { r.proc.Kill() }

// value returns what a string key holds, and whether it exists.
func (r *redisServer) value(t testing.TB, key string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	value, err := r.direct.Get(ctx, key).Result()
	if err == redis.Nil {
		return "", false
	}
	if err != nil {
		t.Fatalf("GET %s on %s: %v", key, r.name, err)
	}
	return value, true
}

// stateScript describes a key canonically: equal texts mean equal contents,
// whatever the encoding and the order on that server.
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

// keyState is one key on one server. ttl is in milliseconds as PTTL has it.
type keyState struct {
	kind, contents string
	ttl            int64
}

func (s keyState) String() string {
	return fmt.Sprintf("%s %q, %d ms left", s.kind, s.contents, s.ttl)
}

// matches tells whether two servers hold the same; remaining times may be
// apart by as much as the commands came apart.
func (s keyState) matches(other keyState) bool {
	if s.kind != other.kind || s.contents != other.contents {
		return false
	}
	if s.ttl < 0 || other.ttl < 0 {
		return s.ttl == other.ttl
	}
	return max(s.ttl-other.ttl, other.ttl-s.ttl) <= remainingTolerance
}

func (r *redisServer) states(ctx context.Context, keys []string) (map[string]keyState, error) {
	pipe := r.direct.Pipeline()
	replies := make(map[string]*redis.Cmd, len(keys))
	for _, key := range keys {
		replies[key] = pipe.Eval(ctx, stateScript, []string{key})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("reading the keys of %s: %w", r.name, err)
	}
	states := make(map[string]keyState, len(keys))
	for key, reply := range replies {
		fields, err := reply.Slice()
		if err != nil || len(fields) != 3 {
			return nil, fmt.Errorf("reading %q of %s: %v %w", key, r.name, fields, err)
		}
		states[key] = keyState{fields[0].(string), fields[1].(string), fields[2].(int64)}
	}
	return states, nil
}
