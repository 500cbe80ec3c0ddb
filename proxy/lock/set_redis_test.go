package lock

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// These tests give the same commands, valid and invalid, to a live redis-server and to
// the parsers. A parser's result must predict the server's whole reply and the key's
// state after it.

const (
	lockRedisTTL       = 1_000_000_000 // of a key that has one, in milliseconds
	lockRedisTolerance = 60_000
)

func TestSetAgreesWithRedis(t *testing.T) {
	var commands [][][]byte
	now := time.Now()
	times := append(oddNumbers(),
		strconv.FormatInt(now.Unix()+10_000, 10), strconv.FormatInt(now.UnixMilli()+10_000_000, 10))
	words := []string{"NX", "nx", "Xx", "GET", "KEEPTTL", "keepttl", "EX", "px", "EXAT", "pxat", "PERSIST", "NX\x00AT", "EXA", "", "foo", "IFEQ"}
	for _, options := range optionLists(words, times) {
		commands = append(commands, lockRedisCommand(append([]string{"SET", "k", "v"}, options...)...))
	}
	for _, time := range times {
		commands = append(commands, lockRedisCommand("SETEX", "k", time, "v"), lockRedisCommand("PSETEX", "k", time, "v"),
			lockRedisCommand("GETEX", "k", "EXAT", time), lockRedisCommand("GETEX", "k", "pxat", time))
	}
	server := startLockRedis(t)
	for _, state := range []keyState{absentKey, expiringKey} {
		for i, got := range server.run(t, state, commands) {
			args := commands[i]
			want := foretellSet(args, state, now)
			if !want.agrees(got) {
				t.Errorf("%q on a key with TTL %d: Redis says %q and leaves TTL %d; the parser means %+v",
					args, state, got.reply, got.ttl, want)
			}
		}
	}
}

func foretellSet(args [][]byte, state keyState, now time.Time) foretold {
	c, reply := optionsOf(args, now)
	if strings.EqualFold(string(args[0]), "getex") {
		switch {
		case c.timeAt == 0:
			return foretold{anything: true} // left to the masters
		case state == absentKey:
			return foretold{reply: "$-1\r\n", ttl: absentKey}
		}
		c.get, c.onlyPresent = true, true
	}
	present := state != absentKey
	switch {
	case reply != "":
		return foretold{reply: string(reply), ttl: state}
	case c.conditional:
		return foretold{reply: string(wire.ErrSyntax), ttl: state} // redis-server 7.0 knows none of these
	}
	written := !(c.onlyAbsent && present) && !(c.onlyPresent && !present)
	f := foretold{reply: "$-1\r\n", ttl: state}
	switch {
	case c.get && present:
		f.reply = "$3\r\nold\r\n"
	case !c.get && written:
		f.reply = "+OK\r\n"
	}
	switch {
	case !written || c.keepTTL && present:
	case c.over:
		f.ttl = absentKey
	case c.ttl > 0:
		f.ttl = keyState(c.ttl)
	default:
		f.ttl = permanentKey
	}
	return f
}

func TestExpireAgreesWithRedis(t *testing.T) {
	var commands [][][]byte
	now := time.Now()
	times := append(oddNumbers(),
		strconv.FormatInt(now.Unix()+10_000, 10), strconv.FormatInt(now.Unix()+100_000_000, 10),
		strconv.FormatInt(now.UnixMilli()+10_000_000, 10), strconv.FormatInt(now.UnixMilli()+100_000_000_000, 10))
	words := []string{"NX", "nx", "Xx", "GT", "gt", "LT", "lt", "XX", "", "foo", "a\r\nb\r\n", "LT\x00", "foo\x00bar", "1"}
	lists := optionLists(words, nil)
	for i, name := range []string{"EXPIRE", "pexpire", "EXPIREAT", "PexpireAt"} {
		for _, time := range times {
			commands = append(commands, lockRedisCommand(name, "k", time))
			for j := i; j < len(lists); j += 23 {
				commands = append(commands, lockRedisCommand(append([]string{name, "k", time}, lists[j]...)...))
			}
		}
	}
	server := startLockRedis(t)
	for _, state := range []keyState{absentKey, permanentKey, expiringKey} {
		for i, got := range server.run(t, state, commands) {
			args := commands[i]
			want := foretellExpire(args, state, now)
			if !want.agrees(got) {
				t.Errorf("%q on a key with TTL %d: Redis says %q and leaves TTL %d; the parser means %+v",
					args, state, got.reply, got.ttl, want)
			}
		}
	}
}

func foretellExpire(args [][]byte, state keyState, now time.Time) foretold {
	c, reply := optionsOf(args, now)
	if reply != "" {
		return foretold{reply: string(reply), ttl: state}
	}
	expires := state != permanentKey
	refused := state == absentKey
	switch c.expires {
	case "NX":
		refused = refused || expires
	case "XX":
		refused = refused || !expires
	case "GT":
		refused = refused || !expires || c.ttl <= int64(state)
	case "LT":
		refused = refused || expires && c.ttl >= int64(state) || c.bothXXLT && !expires
	}
	switch {
	case refused:
		return foretold{reply: ":0\r\n", ttl: state}
	case c.ttl <= 0:
		return foretold{reply: ":1\r\n", ttl: absentKey}
	}
	return foretold{reply: ":1\r\n", ttl: keyState(c.ttl)}
}

func TestEvalAgreesWithRedis(t *testing.T) {
	const known = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // of "return 1"
	numbers := append(oddNumbers(), "2", "3", "4")
	var commands [][][]byte
	for _, name := range []string{"EVAL", "eval_ro", "EVALSHA", "evalsha_ro"} {
		for _, script := range []string{"return 1", "", known, strings.ToUpper(known), known[1:], known + "0", strings.Repeat("z", 40), "nonsense("} {
			for _, number := range numbers {
				for n := range 4 {
					commands = append(commands, lockRedisCommand(append([]string{name, script, number}, []string{"a", "b", "c"}[:n]...)...))
				}
			}
		}
	}
	server := startLockRedis(t)
	server.run(t, absentKey, [][][]byte{lockRedisCommand("SCRIPT", "LOAD", "return 1")})
	for i, got := range server.run(t, absentKey, commands) {
		args := commands[i]
		bySHA := strings.HasPrefix(strings.ToLower(string(args[0])), "evalsha")
		want := checkEval(args, bySHA)
		if want != "" && got.reply != string(want) {
			t.Errorf("%q: Redis says %q, we %q", args, got.reply, want)
		}
		if ran := got.reply == ":1\r\n" || got.reply == "$-1\r\n" || strings.HasPrefix(got.reply, "-NOSCRIPT ") ||
			strings.HasPrefix(got.reply, "-ERR Error compiling script"); want == "" && !ran {
			t.Errorf("%q: Redis says %q, we accept it", args, got.reply)
		}
	}
}

// TestRefusalsAgreeWithRedis compares the errors for commands that no server would run.
func TestRefusalsAgreeWithRedis(t *testing.T) {
	var commands [][][]byte
	for _, line := range []string{"SET", "SET k", "get", "GET k k", "SETNX k", "GETSET k", "EXPIRE k", "PERSIST k k", "TTL", "DEL", "Mget",
		"EVAL s", "evalsha", "HSET k f", "OBJECT", "object encoding", "OBJECT FOO k", "Object", "XINFO stream", "xinfo nonsense k", "MEMORY usage",
		"NONSENSE k", "nonsense a b c"} {
		commands = append(commands, fakeLockerCall(line).Args)
	}
	commands = append(commands, lockRedisCommand("OBJECT", "a\r\nb\x00c", "k"), lockRedisCommand("OBJECT", strings.Repeat("x", 200), "k"), lockRedisCommand("object", ""))
	for i, got := range startLockRedis(t).run(t, absentKey, commands) {
		refusal := refuse(Command{Args: commands[i], Route: route.Route{Spec: route.Builtin().Lookup(commands[i])}})
		if string(refusal) != got.reply {
			t.Errorf("%q: Redis says %q, we %q", commands[i], got.reply, refusal)
		}
	}
}

func oddNumbers() []string {
	return []string{"1", "10", "0", "-1", "-0", "007", "+5", " 5", "5 ", "1.5", "five", "", "5\x00", "-10",
		"100000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"9223372036854775", "9223372036854776", "9223372036854775000", "-9223372036854775", "-9223372036854776",
		"9223370000000000", "99999999999999999999", "123456789012345678901234567890"}
}

// optionLists are all lists of up to two words, and many longer ones in which a number
// often follows an option.
func optionLists(words, numbers []string) [][]string {
	all := append(append([]string{}, words...), numbers...)
	lists := [][]string{nil}
	for _, first := range all {
		lists = append(lists, []string{first})
		for _, second := range all {
			lists = append(lists, []string{first, second})
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var list []string
		for range 1 + random.IntN(4) {
			list = append(list, words[random.IntN(len(words))])
			if len(numbers) > 0 && random.IntN(2) == 0 {
				list = append(list, numbers[random.IntN(len(numbers))])
			}
		}
		lists = append(lists, list)
	}
	return lists
}

func lockRedisCommand(words ...string) [][]byte {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	return args
}

// keyState is a key's PTTL: its remaining milliseconds, or one of these.
type keyState int64

const (
	absentKey    keyState = -2
	permanentKey keyState = -1
	expiringKey  keyState = lockRedisTTL
)

// foretold is the predicted reply to a command and its predicted effect on the key.
type foretold struct {
	reply    string
	ttl      keyState
	anything bool
}

type lockRedisAnswer struct {
	reply string
	ttl   keyState
}

func (f foretold) agrees(got lockRedisAnswer) bool {
	if f.anything {
		return true
	}
	if f.reply != got.reply {
		return false
	}
	if f.ttl <= 0 || got.ttl <= 0 {
		// A time to live of less than the run's own length may be over by now.
		over := got.ttl == absentKey || got.ttl == 0
		return f.ttl == got.ttl || f.ttl > 0 && f.ttl < lockRedisTolerance && over
	}
	return max(f.ttl-got.ttl, got.ttl-f.ttl) < lockRedisTolerance
}

type lockRedis struct {
	conn   net.Conn
	reader *bufio.Reader
}

func startLockRedis(t *testing.T) *lockRedis {
	t.Helper()
	conn := proxytest.StartRedis(t).Dial(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &lockRedis{conn: conn, reader: bufio.NewReader(conn)}
}

// run gives the server each command on a key in the given state, and tells its
// reply and the key's remaining time after it.
func (s *lockRedis) run(t *testing.T, state keyState, commands [][][]byte) []lockRedisAnswer {
	t.Helper()
	prepare := resp.AppendCommand(nil, lockRedisCommand("DEL", "k")...)
	switch state {
	case permanentKey:
		prepare = resp.AppendCommand(nil, lockRedisCommand("SET", "k", "old")...)
	case expiringKey:
		prepare = resp.AppendCommand(nil, lockRedisCommand("SET", "k", "old", "PX", strconv.Itoa(lockRedisTTL))...)
	}
	answers := make([]lockRedisAnswer, 0, len(commands))
	const atOnce = 100 // so that neither side's socket buffer fills up
	for len(answers) < len(commands) {
		some := commands[len(answers):min(len(commands), len(answers)+atOnce)]
		var batch []byte
		for _, args := range some {
			batch = append(batch, prepare...)
			batch = resp.AppendCommand(batch, args...)
			batch = resp.AppendCommand(batch, lockRedisCommand("PTTL", "k")...)
		}
		if _, err := s.conn.Write(batch); err != nil {
			t.Fatal(err)
		}
		for range some {
			s.read(t)
			reply := s.read(t)
			var ttl keyState
			if _, err := fmt.Sscanf(s.read(t), ":%d\r\n", &ttl); err != nil {
				t.Fatal(err)
			}
			answers = append(answers, lockRedisAnswer{reply: reply, ttl: ttl})
		}
	}
	return answers
}

// read takes one reply that is no aggregate.
func (s *lockRedis) read(t *testing.T) string {
	t.Helper()
	reply, err := s.reader.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var length int
	if n, _ := fmt.Sscanf(reply, "$%d\r\n", &length); n == 1 && length >= 0 {
		body := make([]byte, length+2)
		if _, err := io.ReadFull(s.reader, body); err != nil {
			t.Fatal(err)
		}
		reply += string(body)
	}
	return reply
}
