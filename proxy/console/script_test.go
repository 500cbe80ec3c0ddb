package console

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/scan"
)

// Scripts in testdata/*.txt show what REDLOCK answers, and what the page gets. It is 2000-01-01 00:00. Replies are written as
// proxytest.Show does. The events are
//
//	REDLOCK MASTERS        a command over RESP2; "RESP3 REDLOCK MASTERS" over RESP3
//	worker is alice of 2   a client has this user and database. "worker begins set lock:a", "worker ends"
//	worker granted lock:a  what a command of it meant for a key, in database 0 or behind "in 3", with the value "secret"
//	slow get lock:a 1500us a command in the slow log
//	masters held lock:a lock:b
//	                       what masters hold under these keys: held, free, unknown, or held later
//	m1 voting              a master of the page, seen at once
//	votes 1ms              of m1; "decides acquire won", "reloads TEXT"
//	after 2m               later
//	page, drains           what the page gets; the process ends
//	held COUNT             what the page lists of locks. "locks a*[" is the interface for programs
//	GET /locks.json?search=a
//	summary 3 of 5, 3 needed, held for 12.4s
//	                       the sentence about a lock: its state, its TTL (17.6s left, without TTL), masters missing
//	health 3 of 5          in one word
func TestScripts(t *testing.T) {
	datatest.Play(t, "testdata/*.txt", func(t *testing.T, told *datatest.Script) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{Script: told, t: t, clients: map[string]*events.Client{}}
			s.scene = newScene()
			s.console.Clients = s.infos
			s.console.Locks, s.console.Log = s, slog.New(slog.NewTextHandler(&s.log, nil))
			s.observer = s.console.Journal.Observer(nobody{})
			for event := range told.Events {
				s.do(event, strings.Fields(event))
			}
			s.Close()
		})
	})
}

type script struct {
	*datatest.Script
	*scene
	t        *testing.T
	log      proxytest.Log
	names    []string
	clients  map[string]*events.Client
	observer redlock.Observer
	logged   int
}

// infos are the clients, the oldest first.
func (s *script) infos() (list []events.ClientInfo) {
	for _, name := range s.names {
		info := s.clients[name].Info()
		info.WaitsOn = "nobody"
		list = append(list, info)
	}
	return list
}

// Do makes the script the plane of locks.
func (s *script) Do(_ context.Context, dst []byte, call lock.Command) []byte {
	s.Printf("the masters are asked: %s %s", call.Args[0], call.Args[1])
	return append(dst, ":1\r\n"...)
}

// ask sends a command as a user that has the right to send it.
func ask(c *Console, line string, version wire.Version) string {
	args := proxytest.Words(line)
	call := Command{Args: args, Route: c.Active.Load().Router.Route(0, args), Version: version, User: &config.Account{Name: "alice"}}
	return string(c.Do(context.Background(), nil, call))
}

func (s *script) do(event string, words []string) {
	_, rest, _ := strings.Cut(event, " ")
	lasts, _ := time.ParseDuration(words[len(words)-1])
	journal := s.console.Journal
	switch words[0] {
	case "redlock", "REDLOCK":
		s.replies(event, wire.RESP2)
	case "RESP3":
		s.replies(rest, wire.RESP3)
	case "slow":
		journal.NoteSlow(events.SlowCommand{Took: lasts, Command: words[1], Key: words[2], Arguments: 1, At: time.Now()}, nil)
	case "masters":
		s.console.Reader = readerOf(words[1], words[2:])
	case "after":
		s.watch(lasts)
	case "votes":
		vote := redlock.Granted
		if words[1] == "failed" {
			vote = redlock.Failed
		}
		s.observer.Voted("m1", vote, lasts, time.Now())
	case "decides":
		journal.NoteCommand(named[redlock.Kind](words[1]), named[redlock.Verdict](words[2]), time.Now())
	case "reloads":
		journal.NoteReload(rest)
	case "new":
		s.masters.NewUntil = time.Now().Add(lasts)
	case "drains":
		s.draining = true
	case "page":
		s.json(s.text())
	case "held":
		n, _ := strconv.Atoi(words[1])
		h, ok := s.console.Held(s.t.Context(), "", n)
		s.Printf("in time %v, complete %v, more %v", ok, h.Complete, h.More)
		for _, l := range h.Locks {
			s.Printf("%s of database %d: holder known %v, %d wait, digest %s, text %q", l.Key, l.DB, l.Known, l.Waiters, l.Holding.Digest, l.Holding.Text)
		}
	case "locks":
		text, _ := s.lockTable(s.t.Context(), rest)
		s.json(text)
	case "GET":
		w := httptest.NewRecorder()
		mux := http.NewServeMux()
		s.Register(mux)
		mux.ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, words[1], nil))
		s.Printf("%d %s", w.Code, w.Body)
	case "summary":
		s.summarises(rest)
	case "health":
		voting, _ := strconv.Atoi(words[1])
		of, _ := strconv.Atoi(words[3])
		s.Printf("%s", healthOf(voting, of/2+1, of, s.draining))
	default:
		s.hears(words)
	}
	lines := s.log.String()[s.logged:]
	s.logged += len(lines)
	if lines != "" {
		s.Printf("%s", lines)
	}
	if strings.Contains(lines, "secret") {
		s.t.Errorf("the log shows a value: %s", lines)
	}
}

func (s *script) replies(line string, version wire.Version) {
	reply := ask(s.console, strings.NewReplacer(`\r`, "\r", "LONG", strings.Repeat("x", 10_000)).Replace(line), version)
	text, _ := proxytest.Show([]byte(reply))
	for _, element := range elements(text) {
		s.Printf("%s", element)
	}
	if strings.Contains(reply, "\"secret\"") || strings.Contains(reply, "\nsecret\r") {
		s.t.Errorf("%s shows a value: %q", line, reply)
	}
}

// elements are the elements of a long array, each for a line.
func elements(text string) []string {
	if strings.HasPrefix(text, "[+") {
		return strings.Split(text, " +")
	}
	return strings.Split(strings.NewReplacer("[[", "[\n  [", "[{", "[\n  {", "] [", "]\n  [", "} {", "}\n  {").Replace(text), "\n")
}

// json prints an object with a field a line.
func (s *script) json(text []byte) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	order := json.NewDecoder(strings.NewReader(string(text)))
	depth := 0
	for token, err := order.Token(); err == nil; token, err = order.Token() {
		if delim, ok := token.(json.Delim); ok && (delim == '{' || delim == '[') {
			depth++
		} else if ok {
			depth--
		} else if name, _ := token.(string); depth == 1 && fields[name] != nil {
			zeros := strings.NewReplacer(strings.Repeat("0,", 59), "59 zeros, ").Replace(string(fields[name]))
			s.Printf("%q: %s", name, strings.ReplaceAll(zeros, "},{", "},\n  {"))
			var skipped json.RawMessage
			_ = order.Decode(&skipped)
		}
	}
}

// hears is what a client or a master does.
func (s *script) hears(words []string) {
	name, verb := words[0], words[1]
	if len(name) == 2 && name[0] == 'm' {
		is := redlock.MasterStatus{Name: name, State: named[redlock.MasterState](verb), Reason: strings.Join(words[2:], " ")}
		if verb == "quarantined" {
			is.Until = time.Now().Add(time.Minute)
		}
		if name == "m1" {
			is.Longest, is.ClockAhead, is.ClockWithin = 90*time.Second, -1500*time.Microsecond, 250*time.Microsecond
		}
		s.setMaster(is)
		s.watch(time.Millisecond)
		return
	}
	c := s.clients[name]
	if c == nil {
		c = events.NewClient(int64(len(s.names)+1), "10.0.0.3:1", time.Now())
		c.Introduce(events.Identity{Name: name, RESP: 2})
		s.names, s.clients[name] = append(s.names, name), c
	}
	db := 0
	if n := len(words); words[n-2] == "in" || words[n-2] == "of" {
		db, _ = strconv.Atoi(words[n-1])
	}
	switch verb {
	case "is":
		c.Introduce(events.Identity{Name: name, User: words[2], DB: db, RESP: 3})
	case "begins":
		c.Begin(words[2], []byte(words[3]), time.Now())
	case "ends":
		c.End()
	default:
		s.console.Journal.Note(events.KeyEvent{DB: db, Key: []byte(words[2]), Client: c, Verdict: named[events.Verdict](verb), Value: []byte("secret"), At: time.Now()})
	}
}

func (s *script) setMaster(is redlock.MasterStatus) {
	i := slices.IndexFunc(s.masters.Masters, func(m redlock.MasterStatus) bool { return m.Name == is.Name })
	if i < 0 {
		i, s.masters.Masters = len(s.masters.Masters), append(s.masters.Masters, is)
	}
	s.masters.Masters[i] = is
	s.masters.Needed = len(s.masters.Masters)/2 + 1
	s.observer.Standing(is)
}

// watch looks at the masters for a time.
func (s *script) watch(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	s.console.Journal.Watch(ctx, func() redlock.Status { return s.masters })
}

// named is the value of a small set whose name this is.
func named[T interface {
	~uint8 | ~int
	String() string
}](name string) (value T) {
	for value.String() != name {
		value++
	}
	return value
}

// summarises prints the sentence about a lock.
func (s *script) summarises(text string) {
	h := scan.Holding{State: scan.Held, Copy: scan.Copy{Digest: "a1b2c3d4", TTL: 17600 * time.Millisecond}, Masters: 5, Needed: 3}
	held := time.Duration(-1)
	for part := range strings.SplitSeq(text, ", ") {
		words := strings.Fields(part)
		n, _ := strconv.Atoi(words[0])
		switch {
		case part == "without TTL":
			h.TTL = scan.NoTTL
		case part == "free":
			h.State = scan.Free
		case part == "disputed":
			h.State = scan.Disputed
		case words[len(words)-1] == "missing":
			h.State, h.Missing = scan.Unknown, n
		case words[0] == "for":
			held, _ = time.ParseDuration(words[1])
		default:
			h.Holders = n
		}
	}
	s.Printf("%s", summary(h, held))
}

// fakeReader has the same copies under each of its keys.
type fakeReader struct {
	keys   []string
	copies []scan.Copy
	first  []scan.Copy // of the first key, if not nil
}

func readerOf(how string, keys []string) *fakeReader {
	c := scan.Copy{Heard: true, Votes: true, Type: "string", Text: []byte("secret"), Digest: "a1b2c3d4", TTL: 17600 * time.Millisecond}
	f := &fakeReader{keys: keys, copies: []scan.Copy{c, c}}
	switch how {
	case "free":
		f.copies[1] = scan.Copy{Heard: true, Votes: true}
	case "unknown":
		f.copies[1] = scan.Copy{}
	case "later":
		f.first = []scan.Copy{c, {}}
	}
	return f
}

func (f *fakeReader) Look(_ int, keys [][]byte) [][]scan.Copy { return [][]scan.Copy{f.copies} }
func (f *fakeReader) Outstanding(int, []byte) []bool          { return []bool{false, true} }

func (f *fakeReader) Walk(_ context.Context, wants func(int, []byte) bool, each func(int, []byte, []scan.Copy) bool) bool {
	for i, key := range f.keys {
		copies := f.copies
		if i == 0 && f.first != nil {
			copies = f.first
		}
		if wants(3, []byte(key)) && !each(3, []byte(key), copies) {
			return false
		}
	}
	return true
}

// nobody is the Meter behind a Journal.
type nobody struct{ redlock.Observer }

func (nobody) Voted(string, redlock.Vote, time.Duration, time.Time) {}
func (nobody) Standing(redlock.MasterStatus)                        {}
func (nobody) ForgetMaster(string)                                  {}
