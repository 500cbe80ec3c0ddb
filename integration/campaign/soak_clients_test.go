package campaign

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// A soakHabit is the life of a kind of client, from its connection to its end. An error means
// that the turn failed, as happens while servers are away.
type soakHabit struct {
	name string
	turn func(*soakTurn) error
}

type soakTurn struct {
	soak   *soak
	ctx    context.Context
	random *rand.Rand
	addr   string // the proxy's
	token  string // unique to this turn, and long enough for a lock's value
}

// soakPatience bounds a turn. A client that has waited this long for an answer gives up.
const soakPatience = 3 * time.Second

// soakLease is the longest lease of a lock. It is shorter than a quarantine.
const soakLease = 1500 * time.Millisecond

// misplacedReply is a reply that cannot belong to its command.
type misplacedReply struct{ asked, got string }

func (m *misplacedReply) Error() string { return fmt.Sprintf("%s is answered %.100q", m.asked, m.got) }

func soakHabits() []soakHabit {
	return []soakHabit{
		{"locks of their own", lockOnesOwn},
		{"pipelines over both planes", pipelineBothPlanes},
		{"transactions", transact},
		{"messages", hearMessages},
		{"blocking", block},
		{"big values", storeBigValues},
		{"tracking", track},
		{"scripts", runScripts},
		{"a bit of everything", lookAround},
		{"keys that move", useMovingKeys},
		{"bad manners", misbehave},
	}
}

func (turn *soakTurn) connect(options redis.Options) *redis.Client {
	options.Addr, options.MaxRetries, options.DialerRetries, options.ContextTimeoutEnabled = turn.addr, -1, 1, true
	options.PoolSize = 2
	return redis.NewClient(&options)
}

// lockOnesOwn takes locks whose keys nobody uses before or after. If the proxy kept something
// for each key, it would add up.
func lockOnesOwn(turn *soakTurn) error {
	client := turn.connect(redis.Options{DB: 3 * turn.random.IntN(2)})
	defer client.Close()
	for i := range 20 {
		key := fmt.Sprintf("lock:%s:%d", turn.token, i)
		if ok, err := rig.Acquire(turn.ctx, client, key, turn.token, 300*time.Millisecond); err != nil || !ok {
			return cmpError(err, "a lock that nobody has is refused")
		}
		if err := client.SetNX(turn.ctx, key, "another", time.Second).Err(); err != nil {
			return err
		}
		if turn.random.IntN(2) == 0 {
			if _, err := rig.Release(turn.ctx, client, key, turn.token); err != nil {
				return err
			}
		}
	}
	return nil
}

func cmpError(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}

// pipelineBothPlanes writes everything at once and checks each reply.
func pipelineBothPlanes(turn *soakTurn) error {
	client := turn.connect(redis.Options{})
	defer client.Close()
	for i := range 2 {
		pipe := client.Pipeline()
		key := fmt.Sprintf("%s:%d", turn.token, i)
		var echoes []*redis.StringCmd
		for j := range 4 {
			pipe.Set(turn.ctx, "plain:"+key, turn.token, time.Minute)
			echoes = append(echoes, pipe.Echo(turn.ctx, fmt.Sprintf("%s:%d", key, j)))
			pipe.Do(turn.ctx, "SET", "lock:"+key, turn.token, "NX", "PX", 300)
			pipe.Get(turn.ctx, "lock:"+key)
			pipe.MGet(turn.ctx, "plain:"+key, "lock:"+key)
			pipe.Del(turn.ctx, "lock:"+key, "plain:"+key)
		}
		_, err := pipe.Exec(turn.ctx)
		for j, echo := range echoes {
			want := fmt.Sprintf("%s:%d", key, j)
			if got, err := echo.Result(); err == nil && got != want {
				return &misplacedReply{"ECHO " + want, got}
			}
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

func transact(turn *soakTurn) error {
	client := turn.connect(redis.Options{})
	defer client.Close()
	for _, prefix := range []string{"plain:", "lock:"} {
		key := prefix + turn.token
		err := client.Watch(turn.ctx, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(turn.ctx, func(pipe redis.Pipeliner) error {
				pipe.Set(turn.ctx, key, turn.token, time.Second)
				pipe.Get(turn.ctx, key)
				return nil
			})
			return err
		}, key)
		if err != nil && !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
	return client.Do(turn.ctx, "MULTI").Err() // the client leaves without EXEC
}

// hearMessages subscribes on both planes, receives its own message, and leaves. In half of
// the turns it does not unsubscribe.
func hearMessages(turn *soakTurn) error {
	client := turn.connect(redis.Options{})
	defer client.Close()
	channels := []string{"redisson_lock__channel:{lock:" + turn.token + "}", "plain:" + turn.token}
	heard := client.Subscribe(turn.ctx, channels...)
	defer heard.Close()
	for range channels {
		if _, err := heard.Receive(turn.ctx); err != nil {
			return err
		}
	}
	if err := heard.PSubscribe(turn.ctx, "news:*"); err != nil {
		return err
	}
	for _, channel := range channels {
		if err := client.Publish(turn.ctx, channel, turn.token).Err(); err != nil {
			return err
		}
		for {
			got, err := heard.ReceiveTimeout(turn.ctx, time.Second)
			if err != nil {
				return err
			}
			if message, ok := got.(*redis.Message); ok {
				if message.Payload != turn.token {
					return &misplacedReply{"a subscription of " + channel, message.Payload}
				}
				break
			}
		}
	}
	if turn.random.IntN(2) == 0 {
		return heard.Unsubscribe(turn.ctx, channels...)
	}
	return nil
}

// block waits for elements that come and for elements that do not come, and leaves while it
// waits.
func block(turn *soakTurn) error {
	client := turn.connect(redis.Options{})
	defer client.Close()
	for _, list := range []string{"lock-signal:" + turn.token, "plain:" + turn.token} {
		if err := client.Do(turn.ctx, "BLPOP", list, "0.02").Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if err := client.LPush(turn.ctx, list, turn.token).Err(); err != nil {
			return err
		}
		got, err := client.BLPop(turn.ctx, time.Second, list).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if err == nil && (len(got) != 2 || got[1] != turn.token) {
			return &misplacedReply{"BLPOP " + list, strings.Join(got, " ")}
		}
		brief, cancel := context.WithTimeout(turn.ctx, rig.Between(turn.random, 0, 50*time.Millisecond))
		_ = client.BLPop(brief, time.Minute, list).Err()
		cancel()
	}
	return nil
}

func storeBigValues(turn *soakTurn) error {
	client := turn.connect(redis.Options{ReadTimeout: soakPatience, WriteTimeout: soakPatience})
	defer client.Close()
	value := strings.Repeat(turn.token, (1+turn.random.IntN(4<<20))/len(turn.token)+1)
	for _, key := range []string{"plain:big:" + turn.token, "lock:big:" + turn.token} {
		if strings.HasPrefix(key, "lock:") {
			value = value[:min(len(value), 100<<10)]
		}
		if err := client.Set(turn.ctx, key, value, time.Second).Err(); err != nil {
			return err
		}
		got, err := client.Get(turn.ctx, key).Result()
		if err == nil && got != value {
			return &misplacedReply{"GET " + key, got}
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return client.Del(turn.ctx, "plain:big:"+turn.token).Err()
}

// track asks for invalidations, causes one, and leaves.
func track(turn *soakTurn) error {
	return turn.raw(func(w *rig.Wire) error {
		key := "lock:tracked:" + turn.token
		for _, command := range [][]string{
			{"HELLO", "3"}, {"CLIENT", "TRACKING", "ON"}, {"GET", key}, {"GET", "plain:" + key}, {"SET", key, turn.token, "PX", "100"},
		} {
			reply, err := w.Do(command...)
			if err != nil {
				return err
			}
			if bytes.HasPrefix(reply, []byte("-")) {
				return errors.New(string(reply))
			}
		}
		return nil
	})
}

// raw gives talk a raw connection, and then closes it in whatever state it is.
func (turn *soakTurn) raw(talk func(*rig.Wire) error) error {
	conn, err := net.DialTimeout("tcp", turn.addr, soakPatience)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(turn.ctx, func() { conn.Close() })()
	return talk(&rig.Wire{Conn: conn, In: bufio.NewReader(conn)})
}

// runScripts runs texts that nobody has sent before. Their number is small enough that a
// proxy that remembers them all does not seem to leak.
func runScripts(turn *soakTurn) error {
	client := turn.connect(redis.Options{})
	defer client.Close()
	n := turn.random.IntN(300)
	for _, prefix := range []string{"lock:", "plain:"} {
		script := redis.NewScript(fmt.Sprintf("redis.call('SET', KEYS[1], ARGV[1], 'PX', %d) return redis.call('GET', KEYS[1])", 100+n))
		got, err := script.Run(turn.ctx, client, []string{prefix + turn.token}, turn.token).Text()
		if err != nil {
			return err
		}
		if got != turn.token {
			return &misplacedReply{"a script", got}
		}
	}
	if n == 0 {
		return client.ScriptFlush(turn.ctx).Err()
	}
	return nil
}

// lookAround sends various commands that have nothing to do with locks.
func lookAround(turn *soakTurn) error {
	client := turn.connect(redis.Options{ClientName: "soak", DB: turn.random.IntN(soakDatabases), Protocol: 2 + turn.random.IntN(2)})
	defer client.Close()
	for _, command := range [][]any{
		{"PING"}, {"INFO"}, {"INFO", "redlock"}, {"CLIENT", "LIST"}, {"SCAN", 0, "COUNT", 10}, {"CONFIG", "GET", "databases"}, {"TIME"},
		{"HSET", "hash", turn.token[:5], 1}, {"ZADD", "zset", 1, turn.token[:5]}, {"LPUSH", "list", 1}, {"LTRIM", "list", 0, 10}, {"INCR", "n"},
		{"NOSUCHCOMMAND"}, {"GET"}, {"MGET", "lock:a", "plain"}, {"RENAME", "lock:a", "plain"}, {"RESET"}, {"PING"},
	} {
		var refused redis.Error
		if err := client.Do(turn.ctx, command...).Err(); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return client.Ping(turn.ctx).Err()
}

func useMovingKeys(turn *soakTurn) error {
	client := turn.connect(redis.Options{})
	defer client.Close()
	return client.SetNX(turn.ctx, strings.TrimSuffix(soakMovingKeys, "*")+turn.token, turn.token, 300*time.Millisecond).Err()
}

// misbehave leaves in the middle of commands and of replies, or sends bytes that are no
// command.
func misbehave(turn *soakTurn) error {
	return turn.raw(func(w *rig.Wire) error {
		whole := append(rig.Encode("SET", "lock:"+turn.token, turn.token, "NX", "PX", "300"), rig.Encode("GET", "plain")...)
		switch turn.random.IntN(5) {
		case 0:
			return w.Send(whole[:turn.random.IntN(len(whole))])
		case 1:
			return w.Send([]byte("*1\r\n$99999999999999\r\n"))
		case 2:
			return w.Send(bytes.Repeat(rig.Encode("LRANGE", "list", "0", "-1"), 2000)) // the client reads no reply
		case 3:
			if err := w.Send(rig.Encode("MONITOR")); err != nil {
				return err
			}
			_, err := w.Read()
			return err
		}
		return w.Send(whole)
	})
}
