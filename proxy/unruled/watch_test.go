package unruled

import (
	"crypto/sha1"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/route"
)

// TestWatch plays testdata/scripts. A line is one of
//
//	a: SET k v NX PX 10 | DEL k      client a sends commands. RELEASE and other names stand for texts
//	@ is x y z, a: SETNX @ me        client a sends these with each word in the place of @; also "1 to 64" and "1 to 64 in letters"
//	RELEASE is return 1              a script's text
//	after 5s
//	rules lock:*                     the lock rules, for what is shown
//	ignore app* x*                   what is neither reported nor shown
//
// Below stands what was logged, each pattern that has new uses or another rule, and the number of other uses.
func TestWatch(t *testing.T) {
	datatest.Play(t, "testdata/scripts/*.txt", func(_ *testing.T, s *datatest.Script) {
		b := newStage()
		for event := range s.Events {
			b.do(event)
			for _, line := range b.came() {
				s.Printf("%s", line)
			}
		}
	})
}

// A stage is a Watch with what stands around it.
type stage struct {
	watch   *Watch
	log     strings.Builder
	texts   map[string]string // by their names
	shapes  map[string]Shape  // by the SHA1 in hex
	router  route.Router
	ignored []string
	watches map[string]bool // by client
	now     time.Duration
	shown   map[string]bool
}

func newStage() *stage {
	s := &stage{
		texts: map[string]string{}, shapes: map[string]Shape{}, router: route.Router{Table: route.Builtin()},
		watches: map[string]bool{}, shown: map[string]bool{}, now: time.Hour + 900*time.Millisecond,
	}
	s.watch = New(slog.New(slog.NewTextHandler(&s.log, nil)))
	return s
}

func (s *stage) do(event string) {
	words := strings.Fields(event)
	switch {
	case words[0] == "after":
		pause, err := time.ParseDuration(words[1])
		if err != nil {
			panic(err)
		}
		s.now += pause
	case words[0] == "ignore":
		s.ignored = words[1:]
	case words[0] == "rules":
		s.router.Rules = nil
		for _, match := range words[1:] {
			s.router.Rules = append(s.router.Rules, route.Rule{Match: match, DB: route.AnyDB})
		}
	case words[0] == "@":
		list, said, _ := strings.Cut(strings.TrimPrefix(event, "@ is "), ", ")
		for _, word := range series(list) {
			s.do(strings.ReplaceAll(said, "@", word))
		}
	case words[1] == "is":
		_, s.texts[words[0]], _ = strings.Cut(event, " is ")
	default:
		client, said, _ := strings.Cut(event, ": ")
		for command := range strings.SplitSeq(said, " | ") {
			if c := s.command(client, command); s.router.Table.Lookup(c.Args).Is(route.Locking) {
				s.watch.See(c)
			}
		}
	}
}

// series are the words of a list.
func series(list string) (words []string) {
	var first, last int
	if n, _ := fmt.Sscanf(list, "%d to %d", &first, &last); n < 2 {
		return strings.Fields(list)
	}
	for i := first; i <= last; i++ {
		word := strconv.Itoa(i)
		if strings.HasSuffix(list, "in letters") {
			word = strings.Map(func(digit rune) rune { return digit - '0' + 'a' }, word)
		}
		words = append(words, word)
	}
	return words
}

// command reads a client's command. Names of texts become texts.
func (s *stage) command(client, text string) *Command {
	var args [][]byte
	for word := range strings.FieldsSeq(text) {
		if named, found := s.texts[word]; found {
			word = named
		}
		args = append(args, []byte(word))
	}
	to := s.router.Route(0, args)
	switch to.Spec.Name {
	case "watch":
		s.watches[client] = true
	case "exec":
		s.watches[client] = false
	}
	return &Command{
		Name: to.Spec.Name, Args: args, Keys: to.Keys, Script: s.shape(to.Spec.Name, args), Now: int64(s.now),
		Connection: int64(client[0]), Library: "library of " + client, Watches: s.watches[client], Ignored: s.ignored,
	}
}

// shape is that of the script in a command. EVALSHA finds no text.
func (s *stage) shape(name string, args [][]byte) Shape {
	if name != "eval" {
		return Shape{}
	}
	sha := fmt.Sprintf("%x", sha1.Sum(args[1]))
	if s.shapes[sha].ID == 0 {
		s.shapes[sha] = ShapeOf(uint64(len(s.shapes)+1), args[1])
	}
	return s.shapes[sha]
}

// came returns what came of an event.
func (s *stage) came() (lines []string) {
	for _, message := range []string{"keys that look like locks match no lock rule", "clients run scripts by EVALSHA whose texts no client has sent"} {
		if n := strings.Count(s.log.String(), message); n > 0 {
			lines = append(lines, fmt.Sprintf("log, %dx: %s", n, message))
		}
	}
	s.log.Reset()
	show := func(line string) {
		if !s.shown[line] {
			lines = append(lines, line)
		}
		s.shown[line] = true
	}
	if s.watch.Unread() {
		show("there are scripts whose texts are unread")
	}
	found, others := s.watch.Found(s.router.Rules, s.ignored), s.watch.Uses()
	for _, f := range found {
		if others -= f.Uses; f.First.IsZero() || f.Last.Before(f.First) {
			show(fmt.Sprint("first at ", f.First, ", last at ", f.Last))
		}
		if len(found) < 15 {
			show(fmt.Sprintf("used %dx: %s (%s; %s)", f.Uses, f.Rule(), f.Shape, f.Library))
		}
	}
	if len(found) >= 15 {
		show(fmt.Sprint(len(found), " patterns"))
	}
	if others > 0 {
		show(fmt.Sprint("and others ", others, "x"))
	}
	return lines
}

// Goroutines need not wait for one another. Two keys may have one place by chance, and then their uses may be missed.
func TestSeeFromManyGoroutines(t *testing.T) {
	const clients, times = 4, 500
	s := newStage()
	var all sync.WaitGroup
	for n := range clients {
		client := string([]byte{'a' + byte(n)})
		take, giveBack := s.command(client, "SET K"+client+" a NX EX 9"), s.command(client, "DEL K"+client)
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

func TestSeeAllocatesNothing(t *testing.T) {
	s := newStage()
	commands := []*Command{s.command("a", "SET job:lock:17 a NX EX 10"), s.command("a", "DEL job:lock:17"), s.command("a", "SET k v")}
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
