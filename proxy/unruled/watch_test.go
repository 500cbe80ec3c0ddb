package unruled

import (
	"crypto/sha1"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/proxy/route"
)

const (
	unlock = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	extend = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0"
	obtain = "if redis.call('exists',KEYS[1])==0 or redis.call('get',KEYS[1])==ARGV[1] then return redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) end"
	// enter and leave are both of a kind that takes, as Redisson's are.
	enter = "if redis.call('exists',KEYS[1])==0 then redis.call('hincrby',KEYS[1],ARGV[1],1) redis.call('pexpire',KEYS[1],9) end"
	leave = "if redis.call('hincrby',KEYS[1],ARGV[1],-1)>0 then redis.call('pexpire',KEYS[1],9) else redis.call('del',KEYS[1]) end"
	limit = "local n = redis.call('incr',KEYS[1]) if n == 1 then redis.call('expire',KEYS[1],60) end return n"
)

var texts = strings.NewReplacer("RELEASE", unlock, "EXTEND", extend, "OBTAIN", obtain, "ENTER", enter, "LEAVE", leave, "LIMIT", limit)

// A stage is a Watch with what stands around it.
type stage struct {
	watch   *Watch
	shapes  map[string]Shape // by the SHA1 in hex
	router  route.Router
	ignored []string
	watches map[int]bool // by client
	now     time.Duration
}

func newStage() *stage {
	return &stage{watch: New(slog.New(slog.DiscardHandler)), shapes: map[string]Shape{}, router: route.Router{Table: route.Builtin()}, watches: map[int]bool{}}
}

// say sends commands.
func (s *stage) say(lines string) {
	for line := range strings.SplitSeq(lines, "; ") {
		if c := s.command(line); s.router.Table.Lookup(c.Args).Is(route.Locking) {
			s.watch.See(c)
		}
	}
}

// command reads a line. A text in capitals is one of the scripts above. "2:" in front is the client.
func (s *stage) command(line string) *Command {
	from, rest, found := strings.Cut(line, ":")
	by, err := strconv.Atoi(from)
	if !found || err != nil {
		by, rest = 1, line
	}
	var args [][]byte
	for word := range strings.FieldsSeq(rest) {
		args = append(args, []byte(texts.Replace(word)))
	}
	to := s.router.Route(0, args)
	switch to.Spec.Name {
	case "watch":
		s.watches[by] = true
	case "exec":
		s.watches[by] = false
	}
	return &Command{
		Name: to.Spec.Name, Args: args, Keys: to.Keys, Script: s.shape(to.Spec.Name, args), Now: int64(s.now),
		Connection: int64(by), Library: "lib" + strconv.Itoa(by), Watches: s.watches[by], Ignored: s.ignored,
	}
}

// shape is that of the script in a command. EVALSHA finds a text of an EVAL or a SCRIPT LOAD.
func (s *stage) shape(name string, args [][]byte) Shape {
	text := []byte(nil)
	switch name {
	case "eval":
		text = args[1]
	case "script|load":
		text = args[2]
	case "evalsha":
		return s.shapes[string(args[1])]
	default:
		return Shape{}
	}
	sha := fmt.Sprintf("%x", sha1.Sum(text))
	if s.shapes[sha].ID == 0 {
		s.shapes[sha] = ShapeOf(uint64(len(s.shapes)+1), text)
	}
	return s.shapes[sha]
}

func (s *stage) found() (patterns []string) {
	for _, f := range s.watch.Found(s.router.Rules, s.ignored) {
		patterns = append(patterns, f.Match)
	}
	slices.Sort(patterns)
	return patterns
}

// Each is what a library sends, or what is no lock. Two clients never send the same key by chance.
func TestWhatALockLooksLike(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines string
		found int64 // uses
	}{
		{"redis-py", "SET K a PX 100 NX; 2:EVAL RELEASE 1 K a", 1},
		{"redis-py, without timeout", "SET K a NX; EVAL RELEASE 1 K a", 1},
		{"Laravel", "set K a ex 10 nx; eval RELEASE 1 K a", 1},
		{"phpredis sessions", "SET K h|1 NX PX 9000; 2:SET K h|2 NX PX 9000; EVALSHA ffffffffffffffffffffffffffffffffffffffff 1 K h|1; EVAL RELEASE 1 K h|1", 1},
		{"a lock that is only renewed", "SET K a NX EX 9; EVAL EXTEND 1 K a 9000", 1},
		{"twice", "SET K a NX EX 9; EVAL RELEASE 1 K a; SET K b NX EX 9; EVAL RELEASE 1 K b", 2},
		{"celery-once, ShedLock", "SET K a NX EX 9; 2:SET K b NX EX 9; DEL K", 1},
		{"Spring 5, by hand", "SETNX K a; UNLINK K", 1},
		{"StackExchange.Redis", "SET K a EX 9 NX; 2:WATCH K; 2:GET K; 2:MULTI; 2:DEL K; 2:EXEC", 1},
		{"DELEX", "SET K a NX EX 9; 2:DELEX K IFEQ a", 1},
		{"DELIFEQ", "SET K a NX EX 9; 2:DELIFEQ K a", 1},
		{"SET IFEQ", "SET K a NX EX 9; SET K b IFEQ a PX 90", 1},
		{"redlock gem, Spring", "EVAL OBTAIN 1 K a 100; 2:EVAL OBTAIN 1 K b 100; 2:EVAL RELEASE 1 K b; EVAL RELEASE 1 K a", 1},
		{"Redisson", "EVAL LEAVE 1 K a; EVAL ENTER 1 K a; EVAL LEAVE 1 K a; EVAL ENTER 1 K a; EVAL LEAVE 1 K a", 2},
		{"Spring 7.1", "EVAL OBTAIN 1 K a 100; DELEX K IFEQ a", 1},
		{"FCALL", "SET K a NX EX 9; FCALL unlock 1 K a", 1},
		{"several keys", "SET K a NX EX 9; DEL x y K", 1},

		{"an idempotency key", "SET K v NX EX 9; SET K v NX EX 9; GET K", 0},
		{"a cache", "SET K v EX 9; GET K; DEL K", 0},
		{"a cache that somebody else empties", "SET K v NX EX 9; 2:DEL K", 0},
		{"create if absent", "SET K v NX; GET K; DEL K", 0},
		{"an optimistic transaction", "WATCH K; GET K; MULTI; SET K 2; EXEC; DEL K", 0},
		{"a rate limit", "SET K 0 NX EX 9; EVAL LIMIT 1 K; EVAL LIMIT 1 K; EVAL LIMIT 1 K", 0},
		{"a counter whose script comes after NOSCRIPT", "SET K 0 NX EX 9; EVALSHA ffffffffffffffffffffffffffffffffffffffff 1 K; EVAL LIMIT 1 K", 0},
		{"a counter and its reset", "EVAL LIMIT 1 K; DEL K", 0},
		{"a script that repeats", "EVAL LEAVE 1 K a; EVAL LEAVE 1 K a; EVAL LEAVE 1 K a", 0},
		{"Laravel's Cache::add", "EVAL OBTAIN 1 K a 9; DEL K", 0},
		{"a release alone", "EVAL RELEASE 1 K a; DELEX K IFEQ a; DEL K", 0},
		{"DELEX of anybody's", "SET K a NX EX 9; 2:DELEX K", 0},
		{"another key", "SET K a NX EX 9; EVAL RELEASE 1 K2 a", 0},
		{"no key", "SET K a NX EX 9; EVAL RELEASE 0 K a", 0},
		{"wrong options", "SET K a EX; SET K a NX EX x; SET K a NX EX -9; SET K a IFEQ", 0},
	} {
		s := newStage()
		s.say(test.lines)
		if got := s.watch.Uses(); got != test.found {
			t.Errorf("%s: %d uses, want %d", test.name, got, test.found)
		}
	}
}

// A DEL after the TTL gives nothing back. Nor does the DEL of a client that was refused, before it takes the key itself.
func TestTakenKeysEnd(t *testing.T) {
	for _, test := range []struct {
		take  string
		after time.Duration
		then  string
		found int64
	}{
		{"SET K a NX PX 4500", 4500 * time.Millisecond, "DEL K", 1},
		{"SET K a NX PX 4500", 8 * time.Second, "DEL K", 0},
		{"SET K a PX 4500 NX", 8 * time.Second, "DEL K", 0},
		{"SET K a NX EX 9", 9 * time.Second, "DEL K", 1},
		{"SET K a NX EX 9", 12 * time.Second, "DEL K", 0},
		{"SET K a NX EX 9223372036854775807", 24 * time.Hour, "DEL K", 1},
		{"SET K a NX PXAT 4000000000000", 59 * time.Minute, "DEL K", 1},
		{"SETNX K a", time.Minute, "DEL K", 1},
		{"SETNX K a", 63 * time.Second, "DEL K", 0},
		{"SET K a NX", 59 * time.Minute, "EVAL RELEASE 1 K a", 1},
		{"SET K a NX", 61 * time.Minute, "EVAL RELEASE 1 K a", 0},
		{"SET K a NX EX 9", 0, "2:SET K b NX EX 9; 2:DEL K", 0},
		{"SET K a NX EX 9", 12 * time.Second, "2:SET K b NX EX 9; 2:DEL K", 1},
	} {
		s := newStage()
		s.now = time.Hour + 900*time.Millisecond
		s.say(test.take)
		s.now += test.after
		s.say(test.then)
		if got := s.watch.Uses(); got != test.found {
			t.Errorf("%s, and %s later %s: %d uses, want %d", test.take, test.after, test.then, got, test.found)
		}
	}
}

// Goroutines need not wait for one another. Two keys may have one place by chance, and then their uses may be missed.
func TestSeeFromManyGoroutines(t *testing.T) {
	const clients, times = 4, 500
	s := newStage()
	var all sync.WaitGroup
	for n := range clients {
		from := strconv.Itoa(n) + ":"
		take, giveBack := s.command(from+"SET K"+from+" a NX EX 9"), s.command(from+"DEL K"+from)
		all.Go(func() {
			for range times {
				s.watch.See(take)
				s.watch.See(giveBack)
			}
		})
	}
	all.Wait()
	if n := s.watch.Uses(); n < times*(clients-2) || n > times*clients {
		t.Errorf("%d uses, want %d", n, times*clients)
	}
}

func TestFoundSaysWhatToDo(t *testing.T) {
	s := newStage()
	for n := range 3 {
		key := "app's:lock:" + strconv.Itoa(n)
		s.say("2:SET " + key + " a NX EX 9")
		s.say("2:EVAL RELEASE 1 " + key + " a")
	}
	list := s.watch.Found(nil, nil)
	if len(list) != 1 || list[0].Uses != 3 || list[0].Rule() != "- match: 'app''s:lock:*'" || list[0].Library != "lib2" ||
		list[0].Shape != "SET NX, then a script that gives it back" || list[0].First.IsZero() || list[0].Last.Before(list[0].First) {
		t.Errorf("it is %+v, %s", list, list[0].Rule())
	}
	if list := s.watch.Found(route.Rules{{Match: "app*", DB: route.AnyDB}}, nil); len(list) != 0 {
		t.Errorf("although there is a rule: %+v", list)
	}
	if list := s.watch.Found(nil, []string{"x", "*:lock:*"}); len(list) != 0 {
		t.Errorf("although it is to be ignored: %+v", list)
	}
	s.ignored = []string{"app*"}
	s.say("SETNX app:1 a")
	s.say("DEL app:1")
	if n := s.watch.Uses(); n != 3 {
		t.Errorf("%d uses, also of what is to be ignored", n)
	}
}

// A text that stays unknown is told of, and may be a release. One that comes soon is not: clients send it after NOSCRIPT.
func TestUnreadScripts(t *testing.T) {
	var u unread
	for i, run := range []struct {
		sha          uint64
		at           int64
		lasts, first bool
	}{
		{1, 0, false, false}, {1, unreadAfter - 1, false, false}, {17, unreadAfter, false, false}, {1, unreadAfter + 1, false, false},
		{1, 2*unreadAfter + 1, true, true}, {1, 3 * unreadAfter, true, false}, {2, 3 * unreadAfter, false, false},
	} {
		if lasts, first := u.add(run.sha, run.at); lasts != run.lasts || first != run.first || u.lasts != (i >= 4) {
			t.Errorf("run %d: %v, %v, %v", i, lasts, first, u.lasts)
		}
	}
	const unlockUnread = "SET K a NX EX 9; EVALSHA ffffffffffffffffffffffffffffffffffffffff 1 K a"
	s := newStage()
	s.say(unlockUnread)
	if s.watch.Unread() || s.watch.Uses() != 0 {
		t.Errorf("one run was enough: %d uses", s.watch.Uses())
	}
	s.now = unreadAfter * time.Millisecond
	s.say(unlockUnread)
	if !s.watch.Unread() || s.watch.Uses() != 1 {
		t.Errorf("it is not told, or is no release: %d uses", s.watch.Uses())
	}
}

// Where locks and other data have one prefix, the rule says so.
func TestMixedPatternsAreMarked(t *testing.T) {
	s := newStage()
	for _, key := range []string{"app:cache:1", "app:lock:1"} {
		s.say("SET " + key + " a NX EX 9")
		s.say("DEL " + key)
	}
	for n := range sampleEvery {
		s.say("SET app:cache:" + strconv.Itoa(n) + " page")
		s.say("SETEX app:cache:" + strconv.Itoa(n) + " 9 page")
		s.say("SET app:lock:" + strconv.Itoa(n) + " a XX PX 9")
	}
	for _, f := range s.watch.Found(nil, nil) {
		if comment := strings.Contains(f.Rule(), "# matches other data, too"); comment != (f.Match == "app:cache:*") || comment != f.Mixed {
			t.Errorf("the rule is %s", f.Rule())
		}
	}
}

func TestSeeAllocatesNothing(t *testing.T) {
	s := newStage()
	commands := []*Command{s.command("SET job:lock:17 a NX EX 10"), s.command("DEL job:lock:17"), s.command("SET k v")}
	once := func() {
		for _, c := range commands {
			s.watch.See(c)
		}
	}
	once()
	if n := testing.AllocsPerRun(100, once); n != 0 || s.watch.Uses() < 100 {
		t.Errorf("%v allocations, %d uses", n, s.watch.Uses())
	}
}

// However many keys are taken and never given back, a lock that was taken last is found.
func TestTableIsBounded(t *testing.T) {
	s := newStage()
	for n := range 10 * places {
		s.say("SET idempotency:" + strconv.Itoa(n) + " v NX EX 5")
	}
	s.say("SET lock:a v NX EX 9")
	s.say("DEL lock:a")
	if found := s.found(); !slices.Equal(found, []string{"lock:a"}) {
		t.Errorf("found %q", found)
	}
}
