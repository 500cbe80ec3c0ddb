package proxy

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/redlock"
)

// A stage is where a dialogue is played: at Redis itself, or at a proxy once it has started.
type stage struct {
	t       *testing.T
	redis   *proxytest.Redis // nil: there is none
	p       *testProxy       // nil: the clients speak to Redis itself
	tls     *tlsTest         // not nil: they come to p over TLS
	masters fakeMasters
	sent    recorder // what the upstream gets
	log     proxytest.Log
	found   *unruled.Watch
	upstreamGate
	scripted atomic.Pointer[string] // the address of an upstream that is no Redis; nil: there is none
	clients  map[string]*speaker
	tellsIDs bool // the client that spoke last has asked for ids

	locksTold, mastersTold, sentTold int // what questions were about so far
}

// A speaker is a client of a dialogue.
type speaker struct {
	*testClient
	name    string
	unread  []byte
	ended   bool
	told    bool   // that it has ended
	id      string // what CLIENT ID has answered
	asksID  bool
	writing sync.WaitGroup
}

func newStage(t *testing.T, redis *proxytest.Redis) *stage {
	t.Helper()
	if redis != nil {
		resetServer(t, redis)
	}
	return &stage{t: t, redis: redis, clients: map[string]*speaker{}}
}

// resetServer has nothing be left of the dialogue before.
func resetServer(t *testing.T, redis *proxytest.Redis) {
	t.Helper()
	awaitNoSubscriber(t, redis)
	for user := range strings.FieldsSeq(redis.Ask(t, "ACL USERS")) {
		if !strings.ContainsAny(user, "*$") && user != "default" {
			redis.Ask(t, "ACL DELUSER "+user)
		}
	}
	for _, line := range []string{`CONFIG SET requirepass ""`, "ACL SETUSER default on nopass ~* &* +@all", "CLIENT UNPAUSE", "SELECT 0", "FLUSHALL", "SCRIPT FLUSH"} {
		if answer := redis.Ask(t, line); answer != "+OK\r\n" {
			t.Fatalf("%s: %s", line, answer)
		}
	}
}

// client is the client with this name. It connects when it is first named.
func (s *stage) client(name string) *speaker {
	s.t.Helper()
	c := s.clients[name]
	if c == nil {
		c = &speaker{name: name}
		switch {
		case s.p == nil:
			c.testClient = dialTest(s.t, "unix", s.redis.Socket)
		case s.tls != nil:
			c.testClient = s.tls.dialTLS(s.tls.config())
		default:
			c.testClient = s.p.dial(s.t)
		}
		s.clients[name] = c
	}
	return c
}

// names are the clients in the order in which they are told of: first the one that speaks.
func (s *stage) names(speaks string) (names []string) {
	for name := range s.clients {
		names = append(names, name)
	}
	slices.Sort(names)
	if i := slices.Index(names, speaks); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, speaks)
	}
	return names
}

// do plays one event, and returns what came of it.
func (s *stage) do(turn turn) (lines []string) {
	s.t.Helper()
	if strings.HasPrefix(turn.event, "proxy:") {
		return nil
	}
	name, what, isSaid := strings.Cut(turn.event, ": ")
	name, isRaw := strings.CutSuffix(name, " raw")
	name, isRepeated := strings.CutSuffix(name, " eventually")
	name, isLast := strings.CutSuffix(name, " at last")
	switch {
	case isRepeated && s.p != nil:
		return s.eventually(turn, name+": "+what)
	case strings.HasSuffix(name, "redis") && s.redis == nil && s.p != nil:
		return turn.came // the proxy is to say what Redis said, without it
	case name == "meanwhile redis": // what it brings to clients is told with the next event
		return []string{s.askServer(what)}
	case name == "redis":
		lines = []string{s.askServer(what)}
	case name == "reload":
		s.reload(what)
		s.p.clients.Reloaded(s.p.current.Load())
	case name == "unnoticed reload": // a client logged in a moment before
		s.reload(what)
	case name == "upstream is":
		s.scriptUpstream(strings.Split(what, " then "))
	case isSaid && !strings.Contains(name, " "):
		s.say(name, what, isRaw)
		if isLast {
			s.clients[name].halfClose()
		}
	default:
		if name, lines = s.happen(turn); lines != nil {
			return lines
		}
	}
	switch {
	case s.p == nil:
		lines = append(lines, s.settled(name)...)
	case datatest.Rewriting():
		lines = append(lines, s.untilQuiet(name)...)
	default:
		lines = append(lines, s.awaited(name, turn.came[min(len(lines), len(turn.came)):])...)
	}
	return lines
}

// eventually has a client ask again until the answer is the recorded one.
func (s *stage) eventually(asked turn, event string) (lines []string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		lines = s.do(turn{event, asked.came})
		if datatest.Rewriting() || slices.Equal(lines, asked.came) || time.Now().After(deadline) {
			return lines
		}
	}
}

// say has a client send commands in one piece.
func (s *stage) say(name, what string, isRaw bool) {
	s.t.Helper()
	c := s.client(name)
	text := proxytest.Unquote(what)
	if !isRaw {
		text = strings.ReplaceAll(s.filledIn(what), " | ", "\r\n") + "\r\n"
	}
	c.asksID = what == "CLIENT ID"
	s.tellsIDs = c.asksID || strings.Contains(what, "GETREDIR") || strings.Contains(what, "TRACKINGINFO")
	write := func() { _, _ = io.WriteString(c, text) } // the server may have hung up
	if len(text) < 4<<10 {
		write()
	} else { // the server may want its answers to be read first
		c.writing.Go(write)
	}
}

var placeholder = regexp.MustCompile(`<(?:(id|address) of (\w+)|(marker|server))>`)

// filledIn is a text with what differs between two runs.
func (s *stage) filledIn(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(hole string) string {
		parts := placeholder.FindStringSubmatch(hole)
		switch {
		case parts[3] == "marker":
			return redlock.MarkerKey
		case parts[3] == "server":
			return s.p.address
		case parts[1] == "id":
			return s.client(parts[2]).id
		}
		return s.client(parts[2]).LocalAddr().String()
	})
}

// shown is an answer as the dialogue has it.
func (s *stage) shown(c *speaker, line, speaks string) string {
	for _, other := range s.clients {
		if s.tellsIDs && other.id != "" && line == ":"+other.id || s.tellsIDs && other.id != "" && strings.Contains(line, `"redirect" :`+other.id+" ") {
			line = strings.Replace(line, ":"+other.id, ":N of "+other.name, 1)
		}
	}
	if line = proxytest.Mask(line); c.name != speaks {
		line = c.name + ": " + line
	}
	return line
}

// settled returns what has come from Redis, when it has answered all that was sent.
func (s *stage) settled(speaks string) (lines []string) {
	s.t.Helper()
	if c := s.clients[speaks]; c != nil {
		written := make(chan struct{})
		go func() { c.writing.Wait(); close(written) }()
		for isWriting := true; isWriting; {
			select {
			case <-written:
				isWriting = false
			case <-time.After(time.Millisecond):
				c.receive(time.Time{})
			}
		}
	}
	for quiet := 0; quiet < 3; quiet++ { // Redis closes a connection two rounds after the reply to QUIT
		s.redis.Settle(s.t)
		for _, c := range s.clients {
			if c.receive(time.Time{}) {
				quiet = 0
			}
		}
	}
	for _, name := range s.names(speaks) {
		c := s.clients[name]
		lines = append(lines, proxytest.Repeats(s.whole(c, speaks))...)
	}
	return lines
}

// untilQuiet returns what comes from the proxy until nothing more comes for a while. Only -rewrite needs it.
func (s *stage) untilQuiet(speaks string) (lines []string) {
	s.t.Helper()
	for last := time.Now(); time.Since(last) < 500*time.Millisecond; {
		for _, c := range s.clients {
			if c.receive(time.Now().Add(5 * time.Millisecond)) {
				last = time.Now()
			}
		}
		if len(s.clients) == 0 {
			return nil
		}
	}
	for _, name := range s.names(speaks) {
		lines = append(lines, proxytest.Repeats(s.whole(s.clients[name], speaks))...)
	}
	return lines
}

// awaited returns as many lines from each client as are wanted. They may differ from what is wanted.
func (s *stage) awaited(speaks string, wanted []string) (lines []string) {
	s.t.Helper()
	count := map[string]int{}
	for _, line := range wanted {
		count[s.whose(line, speaks)] += proxytest.Repeated(line)
	}
	for _, name := range s.names(speaks) {
		var came []string
		for c := s.clients[name]; len(came) < count[name]; {
			if came = append(came, s.whole(c, speaks)...); len(came) < count[name] && !c.receive(time.Now().Add(patience)) {
				break
			}
		}
		lines = append(lines, proxytest.Repeats(came)...)
	}
	return lines
}

// whose is the client that gets an answer.
func (s *stage) whose(line, speaks string) string {
	if name, _, isNamed := strings.Cut(line, ": "); isNamed && s.clients[name] != nil {
		return name
	}
	return speaks
}

// whole takes the whole answers of what has come, and the end.
func (s *stage) whole(c *speaker, speaks string) (lines []string) {
	for len(c.unread) > 0 {
		line, rest := proxytest.Show(c.unread)
		if line == "" {
			break
		}
		c.unread = rest
		if line[0] == ':' && c.asksID {
			c.id, c.asksID = line[1:], false
		}
		lines = append(lines, s.shown(c, line, speaks))
	}
	if c.ended && !c.told {
		c.told = true
		if len(c.unread) > 0 {
			lines = append(lines, s.shown(c, fmt.Sprintf("%q", c.unread), speaks))
		}
		lines, c.unread = append(lines, s.shown(c, "closed", speaks)), nil
	}
	return lines
}

// receive reads what comes until a time, or what is there if there is none. It is false if nothing came.
func (c *speaker) receive(until time.Time) (came bool) {
	if c.ended {
		return false
	}
	if until.IsZero() {
		text, ended := c.received()
		c.unread, c.ended = append(c.unread, text...), ended
		return text != ""
	}
	_ = c.SetReadDeadline(until)
	buf := make([]byte, 64<<10)
	n, err := c.Read(buf)
	c.unread = append(c.unread, buf[:n]...)
	if netError, isTimeout := err.(net.Error); err != nil && !(isTimeout && netError.Timeout()) {
		c.ended = true
	}
	return n > 0 || c.ended
}

// end closes the clients' sides. Nothing may be left that no event has brought.
func (s *stage) end() {
	s.t.Helper()
	for _, name := range s.names("") {
		c := s.clients[name]
		if !c.ended {
			_ = c.Conn.(interface{ CloseWrite() error }).CloseWrite()
			for !c.ended && c.receive(time.Now().Add(patience)) {
			}
			c.told = true
		}
		if left := s.whole(c, name); len(left) > 0 || len(c.unread) > 0 {
			s.t.Errorf("at the end %s gets %.300q %.300q", name, left, c.unread)
		}
		_ = c.Close()
	}
}
