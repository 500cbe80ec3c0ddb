package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A handshakeClient is one library in one version. Its program connects as
// the library does by itself, does the steps, and prints a line for each.
type handshakeClient struct {
	library  string
	version  string // what the library must say it is; "": what Debian ships
	variant  string // tells apart two entries of one version
	protocol string // asked of the library; "": its own choice
	program  func(t *testing.T) clientProgram

	lockExtras []string // further lines, after those of everyLockStep
	extras     []string // and these only where there is an upstream
	// needsUpstream says why the library cannot connect while the upstream is
	// down; "" if it can.
	needsUpstream string
}

// clientProgram is a command line; what the step needs to know comes behind
// it.
type clientProgram struct {
	words []string
	env   []string
}

func (c handshakeClient) name() string {
	return strings.Join(slices.DeleteFunc([]string{c.library, c.version, c.variant}, func(s string) bool { return s == "" }), " ")
}

var (
	everyOrdinaryStep = []string{"set yes", "get one", "incr 1", "pipeline 11 12 12", "multi 13 13",
		"subscribed yes", "message hello", "unsubscribed yes"}
	everyLockStep = []string{"lock yes", "second no", "owner token-of-the-first-1", "foreign 0", "release 1",
		"free yes", "kept yes"}
	redisPyLock  = []string{"library lock yes", "library second no", "library released yes"}
	redissonLock = []string{"library lock yes", "library again yes", "library second no", "library held yes",
		"library released yes"}
	redissonWait = []string{"library waited yes"}
)

// keptToken is in the lock that each program leaves behind.
const keptToken = "token-of-the-first-1"

var handshakeClients = []handshakeClient{
	{library: "redis-py", version: "3.5.3", program: python("handshake.py", "3.5.3"), lockExtras: redisPyLock},
	{library: "redis-py", version: "4.6.0", program: python("handshake.py", "4.6.0"), lockExtras: redisPyLock},
	{library: "redis-py", version: "5.2.1", program: python("handshake.py", "5.2.1"), lockExtras: redisPyLock},
	{library: "redis-py", version: "6.4.0", program: python("handshake.py", "6.4.0"), lockExtras: redisPyLock},
	{library: "redis-py", version: "7.4.1", program: python("handshake.py", "7.4.1"), lockExtras: redisPyLock},
	{library: "redis-py", version: "7.4.1", variant: "RESP3", protocol: "3", program: python("handshake.py", "7.4.1"), lockExtras: redisPyLock},
	{library: "redis-py", version: "8.1.0", program: python("handshake.py", "8.1.0"), lockExtras: redisPyLock},
	{library: "redis-py", version: "8.1.0", variant: "asyncio", program: python("handshake_asyncio.py", "8.1.0"), lockExtras: redisPyLock},

	{library: "ioredis", version: "4.31.0", program: node("handshake_ioredis.js", "ioredis4")},
	{library: "ioredis", version: "5.11.1", program: node("handshake_ioredis.js", "ioredis5")},
	{library: "ioredis", version: "6.0.0", program: node("handshake_ioredis.js", "ioredis6")},
	{library: "node-redis", version: "3.1.2", program: node("handshake_redis3.js", "redis3")},
	{library: "node-redis", version: "4.7.1", program: node("handshake_redis.js", "redis4")},
	{library: "node-redis", version: "5.12.1", program: node("handshake_redis.js", "redis5")},
	{library: "node-redis", version: "5.12.1", variant: "RESP3", protocol: "3", program: node("handshake_redis.js", "redis5")},
	{library: "node-redis", version: "6.3.1", program: node("handshake_redis.js", "redis6")},

	{library: "redis-rb", program: interpreted("ruby", "clients/ruby/handshake.rb")},
	{library: "phpredis", program: interpreted("php", "clients/php/handshake_phpredis.php")},
	{library: "predis", program: interpreted("php", "clients/php/handshake_predis.php")},

	{library: "redigo", version: "1.9.3", program: golang("redigo")},
	{library: "go-redis", version: "8.11.5", program: golang("go-redis 8")},
	{library: "go-redis", version: "9.23.0", program: golang("go-redis 9")},
	{library: "go-redis", version: "9.23.0", variant: "RESP2", protocol: "2", program: golang("go-redis 9")},
	{library: "rueidis", version: "1.0.79", program: golang("rueidis"),
		needsUpstream: "CLIENT TRACKING is asked of the upstream, and rueidis does not connect without it"},
	{library: "rueidis", version: "1.0.79", variant: "DisableCache", program: golang("rueidis, no cache")},

	{library: "jedis", version: "3.10.0", program: java("HandshakeJedis", "jedis-3")},
	{library: "jedis", version: "4.4.8", program: java("HandshakeJedis", "jedis-4")},
	{library: "jedis", version: "5.2.0", program: java("HandshakeJedis", "jedis-5")},
	{library: "jedis", version: "6.2.0", program: java("HandshakeJedis", "jedis-6")},
	{library: "jedis", version: "6.2.0", variant: "RESP3", protocol: "3", program: java("HandshakeJedis", "jedis-6")},
	{library: "jedis", version: "8.0.2", program: java("HandshakeJedis", "jedis-8")},
	{library: "lettuce", version: "7.7.0.RELEASE", program: java("HandshakeLettuce", "lettuce-7")},
	{library: "lettuce", version: "7.7.0.RELEASE", variant: "RESP2", protocol: "2", program: java("HandshakeLettuce", "lettuce-7")},
	{library: "redisson", version: "3.17.7", program: java("HandshakeRedisson", "redisson-3"),
		lockExtras: redissonLock, extras: redissonWait},
	{library: "redisson", version: "4.7.0", program: java("HandshakeRedisson", "redisson-4"),
		lockExtras: redissonLock, extras: redissonWait},
}

// TestHandshakes runs every client, unmodified, on three proxies over the same
// masters: one as it comes, one that wants a password, where the client also
// chooses a database and a name, and one whose upstream is down, for clients
// that only lock.
func TestHandshakes(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	stage := &handshakeStage{
		cluster: c,
		plain:   startRedis(t, "plain"),
		locked:  startProxyWithPassword(t, c),
		orphan:  c.addProxy(t, proxyOptions{upstream: fmt.Sprintf("redis://127.0.0.1:%d", freePort(t))}),
	}
	t.Run("clients", func(t *testing.T) {
		for i, client := range handshakeClients {
			t.Run(client.name(), func(t *testing.T) {
				t.Parallel()
				stage.run(t, client, fmt.Sprintf("client-%d", i))
			})
		}
	})
}

// handshakeStage is where clients are tried.
type handshakeStage struct {
	*cluster
	plain  *redisServer  // what the proxy is held against when something fails
	locked *proxyProcess // wants a password
	orphan *proxyProcess // has no upstream
}

// handshakeTrial is one run of one client's program.
type handshakeTrial struct {
	client   handshakeClient
	key      string // makes its keys its own
	port     int
	mode     string // "all", or "locks" for these alone
	password string
	db       int
}

const (
	handshakePassword = "correct-horse"
	handshakeDatabase = 3
)

func (s *handshakeStage) run(t *testing.T, client handshakeClient, key string) {
	program := client.program(t)
	all := handshakeTrial{client: client, key: key, port: s.proxy.port, mode: "all"}
	said := s.mustPass(t, program, all)
	login := handshakeTrial{client: client, key: key + "-login", port: s.locked.port, mode: "all",
		password: handshakePassword, db: handshakeDatabase}
	s.mustPass(t, program, login)
	locks := handshakeTrial{client: client, key: key + "-alone", port: s.orphan.port, mode: "locks"}
	alone := "locks without upstream"
	if client.needsUpstream == "" {
		s.mustPass(t, program, locks)
	} else {
		if _, err := locks.start(t, program); err == nil {
			t.Error("it works without an upstream now: say so here and in the README")
		}
		alone = "not without upstream: " + client.needsUpstream
	}
	if t.Failed() {
		return
	}
	t.Logf("%s %s: everything; with password, database and name; %s", said, client.variant, alone)
}

// mustPass returns what the client says it is. What went wrong is shown byte
// for byte, beside what plain Redis makes of the same client.
func (s *handshakeStage) mustPass(t *testing.T, program clientProgram, trial handshakeTrial) string {
	t.Helper()
	said, err := s.pass(t, program, trial)
	if err != nil {
		t.Errorf("%v\n%s", err, s.explain(t, program, trial))
	}
	return said
}

func (s *handshakeStage) pass(t *testing.T, program clientProgram, trial handshakeTrial) (said string, err error) {
	lines, err := trial.start(t, program)
	if err != nil {
		return "", err
	}
	said, found := strings.CutPrefix(lines[0], "client ")
	wanted := strings.TrimSpace(trial.client.library + " " + trial.client.version)
	if !found || said != wanted && !strings.HasPrefix(said, wanted+" ") {
		return "", fmt.Errorf("the client is %q, not %q", said, wanted)
	}
	if want := trial.wanted(); !slices.Equal(lines[1:], want) {
		return said, fmt.Errorf("%s, %s: the steps are\n%q, not\n%q", trial.client.name(), trial.mode, lines[1:], want)
	}
	return said, s.inspect(t.Context(), trial)
}

func (h handshakeTrial) wanted() []string {
	if h.mode == "all" {
		return slices.Concat(everyOrdinaryStep, everyLockStep, h.client.lockExtras, h.client.extras)
	}
	return slices.Concat(everyLockStep, h.client.lockExtras)
}

// start runs the program to its end and returns its lines, at least one.
func (h handshakeTrial) start(t *testing.T, program clientProgram) ([]string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	words := append(slices.Clone(program.words),
		fmt.Sprint(h.port), h.mode, h.key, h.client.protocol, h.password, fmt.Sprint(h.db))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), program.env...)
	cmd.WaitDelay = time.Second
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w after %q\n%.4000s", h.client.name(), h.mode, err, lines, &complaints)
	}
	return lines, nil
}

// inspect looks at the servers: everything must be where it belongs.
func (s *handshakeStage) inspect(ctx context.Context, trial handshakeTrial) error {
	kept := "lock:" + trial.key + ":kept"
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		holders := 0
		for _, master := range s.masters {
			if value, err := master.lookUp(ctx, trial.db, kept); err != nil {
				return err
			} else if value == keptToken {
				holders++
			}
		}
		if holders >= quorum {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d masters hold %s", holders, kept)
		}
	}
	wanted := map[string]string{kept: ""}
	if trial.mode == "all" {
		wanted["h:"+trial.key+":value"] = "one"
		wanted["h:"+trial.key+":count"] = "13"
	}
	for key, want := range wanted {
		if value, err := s.upstream.lookUp(ctx, trial.db, key); err != nil || value != want {
			return fmt.Errorf("the upstream has %q in %s, want %q (%v)", value, key, want, err)
		}
	}
	return nil
}

// lookUp returns what a key holds in a database, "" if there is none.
func (r *redisServer) lookUp(ctx context.Context, db int, key string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: r.addr(), DB: db, MaxRetries: -1, DisableIdentity: true, Protocol: 2})
	defer client.Close()
	value, err := client.Get(ctx, key).Result()
	if err == redis.Nil {
		return "", nil
	}
	return value, err
}
