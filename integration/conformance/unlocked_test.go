package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestNothingToLearn: a proxy that learns takes none of the things for a lock for which applications use Redis
// otherwise, and then finds the first lock.
//
//	REDLOCK_TEST=long UNLOCKED_TIME=1h go test ./integration/conformance -run '^TestNothingToLearn$' -timeout 2h -v
//
// UNLOCKED_TIME is its length, 5s if not given, and longer until each habit had a turn. The seed (layer.Seed) chooses
// what the clients do.
func TestNothingToLearn(t *testing.T) {
	t.Parallel()
	length, err := time.ParseDuration(cmp.Or(os.Getenv("UNLOCKED_TIME"), "5s"))
	if err != nil {
		t.Fatalf("UNLOCKED_TIME: %v", err)
	}
	seed := layer.Seed(t, "UNLOCKED_TIME")
	proxy := rig.StartProxy(t, rig.Options{Upstream: rig.StartServer(t, "upstream").URL(), Learn: true, LogLevel: "info"})
	services := []*redis.Client{proxy.Client(t), proxy.Client(t)}
	var sent atomic.Int64
	var working sync.WaitGroup
	for over, worker := time.Now().Add(length), 0; worker < 4; worker++ {
		random := rand.New(rand.NewPCG(seed, uint64(worker)))
		working.Go(func() {
			for round := 0; round == 0 || time.Now().Before(over) && !t.Failed(); round++ {
				habits := slices.Sorted(maps.Keys(unlockedHabits))
				random.Shuffle(len(habits), func(i, j int) { habits[i], habits[j] = habits[j], habits[i] })
				for _, habit := range habits {
					n, err := turn(t, services, unlockedHabits[habit], random)
					if err != nil {
						t.Errorf("%s: %v", habit, err)
					}
					sent.Add(int64(n))
					rig.Pause(t.Context(), rig.Between(random, 0, 20*time.Millisecond))
				}
			}
		})
	}
	working.Wait()
	found := proxy.Unruled(t)
	t.Logf("%d habits, %d commands: %d patterns", len(unlockedHabits), sent.Load(), len(found))
	if len(found) > 0 {
		t.Errorf("%q look like locks", found)
	}
	if _, err := turn(t, services, "SET first:lock me NX EX 60; DEL first:lock", nil); err != nil {
		t.Error(err)
	}
	if found := proxy.Unruled(t); !slices.Contains(found, "first:lock") {
		t.Errorf("a lock is not found: %q", found)
	}
}

// unlockedHabits are what applications do without locks. Where # stands is a number. A command with 2: in front comes
// from another service. RUN runs one of unlockedScripts.
var unlockedHabits = map[string]string{
	"a cache":                            "GET cache:page:#; SET cache:page:# html EX 3; GET cache:page:#; DEL cache:page:#",
	"a cache that takes the first value": "SET cache:menu:# json EX 3 NX; GET cache:menu:#; 2:DEL cache:menu:#",
	"a cache with tags":                  "SETEX cache:item:# 3 json; SADD tag:shop:# cache:item:#; EXPIRE tag:shop:# 9; SMEMBERS tag:shop:#; UNLINK cache:item:# tag:shop:#",
	"Django's cache":                     "SET :1:views:# 1 NX EX 3; INCRBY :1:views:# 1; TTL :1:views:#; SET :1:views:# 2 PX 3000",
	"an idempotency key":                 "SET pay:request:# running NX EX 2; GET pay:request:#; SET pay:request:# done XX KEEPTTL",
	"a unique name":                      "SETNX user:name:# 17; GET user:name:#; MGET user:name:# user:name:1",
	"a register":                         "SET config:site:# a NX; RUN replace 1 config:site:# a b; GET config:site:#; SET config:site:# a",
	"a counter":                          "INCR hits:page:#; EXPIRE hits:page:# 9; GETSET hits:page:# 0; DEL hits:page:#",
	"a quota":                            "SET quota:user:# 0 NX EX 2; INCRBY quota:user:# 3; DECR quota:user:#; 2:DEL quota:user:#",
	"a quota that a script counts":       "SET allowance:user:# 9 NX EX 2; RUN spend 1 allowance:user:# 2; GET allowance:user:#",
	"a queue":                            "LPUSH queue:mail job#; RPOPLPUSH queue:mail queue:busy; LREM queue:busy 0 job#; LTRIM queue:mail 0 99; LTRIM queue:busy 0 99",
	"a queue with delays":                "ZADD later:mail # job#; ZRANGEBYSCORE later:mail 0 100; ZREM later:mail job#",
	"Laravel's queue":                    "RUN push 2 queues:default queues:default:notify job#; RUN pop 2 queues:default queues:default:reserved 99; RUN release 2 queues:default:delayed queues:default:reserved job# 99; RUN migrate 2 queues:default:delayed queues:default 999",
	"Sidekiq's queue":                    "ZADD schedule # job#; RUN popbyscore 1 schedule 500; LPUSH queue:low job#; RPOP queue:low",
	"a session":                          "SET sess:# json EX 5; GET sess:#; EXPIRE sess:# 5; SET sess:# json XX EX 5; DEL sess:#",
	"Spring's session":                   "HMSET spring:session:# a 1 b 2; EXPIRE spring:session:# 5; SADD spring:expirations:7 #; SREM spring:expirations:7 #; DEL spring:session:#",
	"a password for once":                "SET otp:# 1234 EX 3; GETDEL otp:#",
	"a rate limit":                       "INCR rate:ip:#; EXPIRE rate:ip:# 1 NX; TTL rate:ip:#; DEL rate:ip:#",
	"a fixed window":                     "RUN window 1 rate:fixed:# 2 9; RUN reached 1 rate:fixed:# 9; DEL rate:fixed:#",
	"a sliding window":                   "RUN sliding 1 rate:sliding:# # 1000 9 id#; ZCARD rate:sliding:#; DEL rate:sliding:#",
	"a bucket of tokens":                 "RUN bucket 1 rate:bucket:# 9 1 #; HGETALL rate:bucket:#; DEL rate:bucket:#",
	"redis_rate":                         "RUN gcra 1 rate:gcra:# 9 1 #; DEL rate:gcra:#",
	"rate-limiter-flexible":              "RUN flexible 1 rlflx:# 1 2; GET rlflx:#; DEL rlflx:#",
	"rate-limit-redis":                   "RUN express 1 rl:# 0 2000; DEL rl:#; DECR rl:#; EXPIRE rl:# 2",
	"Laravel's RateLimiter":              "RUN add 1 limiter:#:timer 99 2; RUN add 1 limiter:# 0 2; INCRBY limiter:# 1; DEL limiter:#; DEL limiter:#:timer",
	"who is present":                     "RUN join 1 room:# user#; HKEYS room:#; RUN leave 1 room:# user#",
	"Redisson's RMapCache":               "RUN keep 2 map:# ends:{map:#} field#; HGET map:# field#; RUN evict 3 map:# ends:{map:#} once:{map:#} 7; RUN drop 2 map:# ends:{map:#} field#",
	"a leaderboard":                      "ZADD scores GT # player#; ZINCRBY scores 1 player#; ZREVRANGE scores 0 9; ZREM scores player#",
	"an optimistic transaction":          "SET stock:# 9; HSET cart:# a 1; WATCH stock:# cart:#; GET stock:#; MULTI; SET stock:# 8; DEL cart:#; EXEC",
	"events":                             "XADD events MAXLEN 100 * a #; XRANGE events - + COUNT 3; PUBLISH news:# x; PFADD seen:today user#; SETBIT days:# 7 1",
	"settings":                           "HSETNX flags:# a 1; HGETALL flags:#; MSET set:a:# 1 set:b:# 2; MGET set:a:# set:b:#; HDEL flags:# a; COPY set:a:# set:b:# REPLACE",
}

var unlockedScripts = map[string]string{
	"window":     `local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n <= tonumber(ARGV[2])`,
	"reached":    `local n = redis.call('GET', KEYS[1]) if not n then return 0 end return tonumber(n) >= tonumber(ARGV[1])`,
	"replace":    `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) return 1 end return 0`,
	"push":       `redis.call('rpush', KEYS[1], ARGV[1]) redis.call('rpush', KEYS[2], 1)`,
	"pop":        `local job = redis.call('lpop', KEYS[1]) if job then redis.call('zadd', KEYS[2], ARGV[1], job) redis.call('lpop', KEYS[2] .. ':notify') end return job`,
	"release":    `redis.call('zrem', KEYS[2], ARGV[1]) redis.call('zadd', KEYS[1], ARGV[2], ARGV[1]) return true`,
	"migrate":    `local v = redis.call('zrangebyscore', KEYS[1], '-inf', ARGV[1]) if next(v) ~= nil then redis.call('zremrangebyrank', KEYS[1], 0, #v - 1) redis.call('rpush', KEYS[2], unpack(v)) end return v`,
	"popbyscore": `local jobs = redis.call('zrange', KEYS[1], '-inf', ARGV[1], 'byscore', 'limit', 0, 1) if jobs[1] then redis.call('zrem', KEYS[1], jobs[1]) return jobs[1] end`,
	"sliding": `redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1] - ARGV[2]) local n = redis.call('ZCARD', KEYS[1])
if n < tonumber(ARGV[3]) then redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4]) redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end return 0`,
	"bucket": `local b = redis.call('HMGET', KEYS[1], 'tokens', 'at') local tokens = tonumber(b[1]) or tonumber(ARGV[1])
tokens = math.min(tonumber(ARGV[1]), tokens + math.max(0, ARGV[3] - (tonumber(b[2]) or ARGV[3])) * ARGV[2]) local ok = tokens >= 1
if ok then tokens = tokens - 1 end redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', ARGV[3]) redis.call('EXPIRE', KEYS[1], 9) return ok`,
	"gcra": `local tat = redis.call("GET", KEYS[1]) if not tat then tat = ARGV[3] else tat = tonumber(tat) end tat = math.max(tat, ARGV[3])
local new_tat = tat + ARGV[2] if ARGV[3] - (new_tat - ARGV[1]) < 0 then return {0, 0} end redis.call("SET", KEYS[1], new_tat, "EX", 2) return {1, 1}`,
	"flexible": `redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX') local consumed = redis.call('incrby', KEYS[1], ARGV[1]) local ttl = redis.call('pttl', KEYS[1])
if ttl == -1 then redis.call('expire', KEYS[1], ARGV[2]) ttl = 1000 * ARGV[2] end return {consumed, ttl}`,
	"express": `local windowMs = tonumber(ARGV[2]) local resetOnChange = ARGV[1] == "1" local timeToExpire = redis.call("PTTL", KEYS[1])
if timeToExpire <= 0 then redis.call("SET", KEYS[1], 1, "PX", windowMs) return { 1, windowMs } end
local totalHits = redis.call("INCR", KEYS[1]) if resetOnChange then redis.call("PEXPIRE", KEYS[1], windowMs) timeToExpire = windowMs end return { totalHits, timeToExpire }`,
	"add":   `return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])`,
	"spend": `local left = tonumber(redis.call('GET', KEYS[1]) or 0) if left < tonumber(ARGV[1]) then return -1 end return redis.call('DECRBY', KEYS[1], ARGV[1])`,
	"keep":  `local old = redis.call('hget', KEYS[1], ARGV[1]) redis.call('zadd', KEYS[2], 9, ARGV[1]) redis.call('hset', KEYS[1], ARGV[1], 1) return old`,
	"evict": `if redis.call('setnx', KEYS[3], ARGV[1]) == 0 then return -1 end redis.call('expire', KEYS[3], 1) redis.call('zrem', KEYS[2], 'gone') redis.call('hdel', KEYS[1], 'gone') return 0`,
	"drop":  `local old = redis.call('hget', KEYS[1], ARGV[1]) if old == false then return nil end redis.call('zrem', KEYS[2], ARGV[1]) redis.call('hdel', KEYS[1], ARGV[1]) return old`,
	"join":  `local n = redis.call('HINCRBY', KEYS[1], ARGV[1], 1) if n == 1 then redis.call('PUBLISH', 'rooms', ARGV[1]) end redis.call('EXPIRE', KEYS[1], 60) return n`,
	"leave": `local n = redis.call('HINCRBY', KEYS[1], ARGV[1], -1) if n <= 0 then redis.call('HDEL', KEYS[1], ARGV[1]) redis.call('PUBLISH', 'rooms', ARGV[1]) end return n`,
}

// turn sends the commands of a habit, those of a service over one connection. It leaves out some that are in no
// transaction. It returns how many it sent.
func turn(t *testing.T, services []*redis.Client, habit string, random *rand.Rand) (sent int, err error) {
	number, whole := "", random == nil || strings.Contains(habit, "MULTI")
	if random != nil {
		number = fmt.Sprint(random.IntN(500))
	}
	conns := make([]*redis.Conn, len(services))
	for i, service := range services {
		conns[i] = service.Conn()
		defer conns[i].Close()
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(habit, "#", number), "; ") {
		if !whole && random.IntN(5) == 0 {
			continue
		}
		line, second := strings.CutPrefix(line, "2:")
		conn := conns[0]
		if second {
			conn = conns[1]
		}
		words := strings.Fields(line)
		args := make([]any, len(words))
		for i, word := range words {
			args[i] = word
		}
		if words[0] == "RUN" {
			keys := int(words[2][0] - '0')
			err = redis.NewScript(unlockedScripts[words[1]]).Run(t.Context(), conn, words[3:3+keys], args[3+keys:]...).Err()
		} else {
			err = conn.Do(t.Context(), args...).Err()
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			return sent, fmt.Errorf("%s: %w", line, err)
		}
		sent++
	}
	return sent, nil
}
