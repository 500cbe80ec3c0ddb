package conformance

import (
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// A handshakeClient is one library in one version. Its program connects in the library's
// own way, does the steps, and prints a line for each.
type handshakeClient struct {
	library  string
	version  string // the version that the library must report; "": Debian's
	variant  string // distinguishes two entries of one version
	protocol string // the protocol to choose; "": the library's own choice
	program  func(t *testing.T) clientProgram

	lockExtras []string // more lines, after those of everyLockStep
	long       bool     // runs in the tier Long only, because of its language
}

func (c handshakeClient) versionOf() (library, version string) { return c.library, c.version }
func (c handshakeClient) onlyLong() bool                       { return c.long }

// clientProgram is a command line. The arguments of a step are appended to it.
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
)

// keptToken is the value of the lock that each program leaves behind.
const keptToken = "token-of-the-first-1"

var handshakeClients = []handshakeClient{
	{library: "redis-py", version: "3.5.3", program: python("handshake.py", "3.5.3"), lockExtras: redisPyLock},
	{library: "redis-py", version: "8.1.0", program: python("handshake.py", "8.1.0"), lockExtras: redisPyLock},
	{library: "redis-py", version: "8.1.0", variant: "RESP2", protocol: "2", program: python("handshake.py", "8.1.0"), lockExtras: redisPyLock},
	{library: "redis-py", version: "8.1.0", variant: "RESP3", protocol: "3", program: python("handshake.py", "8.1.0"), lockExtras: redisPyLock},
	{library: "redis-py", version: "8.1.0", variant: "asyncio", program: python("handshake_asyncio.py", "8.1.0"), lockExtras: redisPyLock},

	{library: "ioredis", version: "4.31.0", program: node("handshake_ioredis.js", "ioredis4")},
	{library: "ioredis", version: "6.0.0", program: node("handshake_ioredis.js", "ioredis6")},
	{library: "node-redis", version: "3.1.2", program: node("handshake_redis3.js", "redis3")},
	{library: "node-redis", version: "6.3.1", program: node("handshake_redis.js", "redis6")},
	{library: "node-redis", version: "6.3.1", variant: "RESP2", protocol: "2", program: node("handshake_redis.js", "redis6")},
	{library: "node-redis", version: "6.3.1", variant: "RESP3", protocol: "3", program: node("handshake_redis.js", "redis6")},

	{library: "redis-rb", long: true, program: interpreted("ruby", "clients/ruby/handshake.rb", rig.Ruby, rig.RubyRedis)},
	{library: "phpredis", program: interpreted("php", "clients/php/handshake_phpredis.php", rig.PHP, rig.Phpredis)},
	{library: "predis", program: interpreted("php", "clients/php/handshake_predis.php", rig.PHP, rig.Predis)},

	{library: "redigo", version: "1.9.3", program: golang("redigo")},
	{library: "go-redis", version: "8.11.5", program: golang("go-redis 8")},
	{library: "go-redis", version: "9.23.0", program: golang("go-redis 9")},
	{library: "go-redis", version: "9.23.0", variant: "RESP2", protocol: "2", program: golang("go-redis 9")},
	{library: "rueidis", version: "1.0.79", program: golang("rueidis")},
	{library: "rueidis", version: "1.0.79", variant: "DisableCache", program: golang("rueidis, no cache")},

	{library: "jedis", version: "3.10.0", program: java("HandshakeJedis", "jedis-3")},
	{library: "jedis", version: "8.0.2", program: java("HandshakeJedis", "jedis-8")},
	{library: "jedis", version: "8.0.2", variant: "RESP2", protocol: "2", program: java("HandshakeJedis", "jedis-8")},
	{library: "jedis", version: "8.0.2", variant: "RESP3", protocol: "3", program: java("HandshakeJedis", "jedis-8")},
	{library: "lettuce", version: "7.7.0.RELEASE", program: java("HandshakeLettuce", "lettuce-7")},
	{library: "lettuce", version: "7.7.0.RELEASE", variant: "RESP2", protocol: "2", program: java("HandshakeLettuce", "lettuce-7")},
	{library: "redisson", version: "3.17.7", program: java("HandshakeRedisson", "redisson-3"),
		lockExtras: redissonLock},
	{library: "redisson", version: "4.7.0", program: java("HandshakeRedisson", "redisson-4"),
		lockExtras: redissonLock},
}
