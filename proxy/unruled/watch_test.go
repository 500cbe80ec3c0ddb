package unruled

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/scripts"
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

type client int64

func (c client) ID() int64       { return int64(c) }
func (c client) Library() string { return "lib" + strconv.Itoa(int(c)) }

// A stage is a Watch with what stands around it.
type stage struct {
	watch   *Watch
	scripts *scripts.Cache
	router  route.Router
	ignored []string
	watches map[client]bool
}

func newStage() *stage {
	return &stage{New(slog.New(slog.DiscardHandler)), scripts.New(1<<20, nil), route.Router{Table: command.Builtin()}, nil, map[client]bool{}}
}

// say sends commands. A text in capitals is one of the scripts above. "2:" in front is the client.
func (s *stage) say(lines string) {
	for line := range strings.SplitSeq(lines, "; ") {
		s.send(line)
	}
}

func (s *stage) send(line string) {
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
		s.watches[client(by)] = true
	case "exec":
		s.watches[client(by)] = false
	}
	if to.Spec.Is(command.Locking) {
		s.watch.See(Command{Name: to.Spec.Name, Args: args, Keys: to.Keys, Client: client(by), Watching: s.watches[client(by)],
			Script: s.scripts.Learn(to.Spec.Name, args), Ignored: s.ignored})
	}
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
	for i := range s.watch.unread.seen {
		s.watch.unread.seen[i].since = 0
	}
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
	w := New(slog.New(slog.DiscardHandler))
	words := func(line string) (args [][]byte) {
		for word := range strings.FieldsSeq(line) {
			args = append(args, []byte(word))
		}
		return args
	}
	var by Client = client(1)
	commands := []Command{
		{Name: "set", Args: words("SET job:lock:17 a NX EX 10"), Keys: []int{1}, Client: by},
		{Name: "del", Args: words("DEL job:lock:17"), Keys: []int{1}, Client: by},
		{Name: "set", Args: words("SET k v"), Keys: []int{1}, Client: by},
	}
	once := func() {
		for _, c := range commands {
			w.See(c)
		}
	}
	once()
	if n := testing.AllocsPerRun(100, once); n != 0 || w.Uses() < 100 {
		t.Errorf("%v allocations, %d uses", n, w.Uses())
	}
}

// However many keys are taken and never given back, a lock that was taken last is found.
func TestTableIsBounded(t *testing.T) {
	s := newStage()
	for n := range 10 * sets * ways {
		s.say("SET idempotency:" + strconv.Itoa(n) + " v NX EX 5")
	}
	s.say("SET lock:a v NX EX 9")
	s.say("DEL lock:a")
	if found := s.found(); !slices.Equal(found, []string{"lock:a"}) {
		t.Errorf("found %q", found)
	}
}

func BenchmarkSee(b *testing.B) {
	words := func(line string) (args [][]byte) {
		for word := range strings.FieldsSeq(line) {
			args = append(args, []byte(word))
		}
		return args
	}
	for _, line := range []string{"SET key:000000012345 xxx EX 10", "SET key:000000012345 xxx NX EX 10", "DEL key:000000012345"} {
		b.Run(line, func(b *testing.B) {
			w := New(slog.New(slog.DiscardHandler))
			args := words(line)
			c := Command{Name: strings.ToLower(string(args[0])), Args: args, Keys: []int{1}, Client: client(1)}
			b.ReportAllocs()
			for b.Loop() {
				w.See(c)
			}
		})
	}
}
