package transparency

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/datatest"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// compareAndDelete is what $release stands for in the scripts, or its sum after EVALSHA. Each
// play has another text, so that no server knows it.
const compareAndDelete = "-- %s\nif redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

// TestHandshakes plays what client libraries send, from the first byte on: in one write what
// they sent in one write. With -rewrite the answers of a plain Redis are recorded, and below
// them what a proxy answers otherwise: one without an upstream, one whose upstream is down,
// one that allows only locks.
//
// The commands were taken from the libraries themselves. For another library, MONITOR of a
// plain Redis shows them. Those of StackExchange.Redis, redis-client, redis-rb 6, Predis 3,
// redis-rs, redis-plus-plus and lyokato/redlock are written after their sources. The
// libraries' own scripts are left out: TestConformance runs them.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	away := fmt.Sprintf("redis://127.0.0.1:%d", rig.FreePort(t))
	proxies := func(auth, locksOnly string) (seats []*seat) {
		for _, each := range []struct{ name, upstream, more string }{
			{"", "", auth}, {"own connections", "", auth + "upstream_connections: own\n"},
			{"no upstream", "none", auth}, {"upstream down", away, auth}, {"only locks", "", locksOnly},
		} {
			if each.name != "only locks" || locksOnly != "" {
				proxy := c.AddProxy(t, rig.Options{Upstream: each.upstream, More: each.more, MasterTimeout: 10 * time.Second})
				seats = append(seats, &seat{name: each.name, addr: proxy.Addr()})
			}
		}
		return seats
	}
	stages := map[string][]*seat{
		"servers":                 proxies("", ""),
		"servers with a password": proxies("auth: {password: correct-horse}\n", "auth: {password: correct-horse, may: locks}\n"),
	}
	if datatest.Rewriting() {
		for name, seats := range stages {
			plain := rig.StartServer(t, "plain")
			if name != "servers" {
				if err := plain.Direct.ConfigSet(t.Context(), "requirepass", "correct-horse").Err(); err != nil {
					t.Fatal(err)
				}
			}
			stages[name] = append([]*seat{{addr: plain.Addr(), isPlain: true}}, seats...)
			stages[name][1].name = "proxy" // it must answer as the plain one does, so the name never appears in a file
		}
	}
	scripts := 0
	datatest.Play(t, "transparency/testdata/handshakes/*.txt", func(t *testing.T, s *datatest.Script) {
		scripts++
		var seats []*seat
		for event := range s.Events {
			if seats == nil {
				for i, each := range stages[event] {
					seats = append(seats, each.sitDown(t, fmt.Sprintf("%dof%d", i, scripts)))
				}
				if seats == nil {
					t.Fatalf("there are no %q", event)
				}
				continue
			}
			var wg sync.WaitGroup
			lines := make([][]string, len(seats))
			for i, each := range seats {
				wg.Go(func() { lines[i] = each.play(t, c, event, s.Recorded()) })
			}
			wg.Wait()
			if seats[0].isPlain && lines[0] == nil {
				lines[0] = lines[1] // a question about the masters
			}
			report(s, seats, lines)
		}
	})
}

// report prints what the first seat heard. Below each line stands what another heard
// instead, or that it heard nothing.
func report(s *datatest.Script, seats []*seat, lines [][]string) {
	most := 0
	for _, each := range lines {
		most = max(most, len(each))
	}
	for n := range most {
		for i, each := range seats {
			line := "nothing"
			if n < len(lines[i]) {
				line = lines[i][n]
			}
			if i == 0 && line != "nothing" {
				s.Printf("%s", line)
			} else if n >= len(lines[0]) || line != lines[0][n] {
				s.Printf("%s: %s", each.name, line)
			}
		}
	}
}

// A seat is a server, and the connections of a script to it.
type seat struct {
	name    string // "": what it answers is recorded without a name
	addr    string
	isPlain bool

	mark, release string // in this script
	conns         map[string]net.Conn
	heard         chan answer
}

type answer struct {
	of   string
	text rig.Value
}

func (s *seat) sitDown(t *testing.T, mark string) *seat {
	here := &seat{name: s.name, addr: s.addr, isPlain: s.isPlain, mark: mark, release: fmt.Sprintf(compareAndDelete, mark),
		conns: map[string]net.Conn{}, heard: make(chan answer, 1000)}
	t.Cleanup(func() {
		for _, conn := range here.conns {
			conn.Close()
		}
	})
	return here
}

// play sends the commands of one event and returns what comes.
func (s *seat) play(t *testing.T, c *rig.Cluster, event string, recorded []string) []string {
	if key, isQuestion := strings.CutPrefix(event, "who has "); isQuestion {
		if s.isPlain {
			return nil
		}
		return []string{s.whoHas(t, c, key)}
	}
	name, text, found := strings.Cut(event, ": ")
	if !found {
		t.Errorf("no event: %s", event)
		return nil
	}
	var raw []byte
	var commands [][]string
	for each := range strings.SplitSeq(text, " | ") {
		words := corpus.Words(strings.ReplaceAll(each, "{n}", s.mark))
		for i, word := range words {
			if word == "$release" {
				words[i] = s.release
				if strings.EqualFold(words[0], "EVALSHA") {
					words[i] = rig.SHA1(s.release)
				}
			}
		}
		commands, raw = append(commands, words), append(raw, rig.Encode(words...)...)
	}
	if s.conns[name] == nil {
		conn, err := net.DialTimeout("tcp", s.addr, rig.Patience)
		if err != nil {
			t.Error(err)
			return nil
		}
		s.conns[name] = conn
		go s.listen(name, conn)
	}
	_, _ = s.conns[name].Write(raw) // if the connection has ended, its end was heard
	var own, others []string
	for _, a := range s.hear(name, len(commands), s.expected(recorded)) {
		line := strings.NewReplacer(s.mark, "{n}", rig.SHA1(s.release), "$release").Replace(show(a.text))
		if a.of != name {
			others = append(others, a.of+" > "+line)
			continue
		}
		if at := len(own); at < len(commands) {
			line = masked(commands[at], a.text, line)
		}
		own = append(own, line)
	}
	slices.Sort(others)
	return append(own, others...)
}

func (s *seat) listen(name string, conn net.Conn) {
	for in := bufio.NewReader(conn); ; {
		raw, err := rig.ReadValue(in, nil)
		if err != nil {
			s.heard <- answer{name, rig.Value{Text: "closed"}}
			return
		}
		value, _ := rig.ParseValue(raw)
		s.heard <- answer{name, value}
	}
}

// expected returns how many lines a file has for this seat below an event; -1: its answers are recorded now.
func (s *seat) expected(recorded []string) int {
	if datatest.Rewriting() {
		return -1
	}
	lines := map[string]int{} // for the first seat, those of all; for another, how many more or fewer
	for _, line := range recorded {
		name, rest, _ := strings.Cut(line, ": ")
		switch isOfAnother := slices.Contains([]string{"own connections", "no upstream", "upstream down", "only locks"}, name); {
		case !isOfAnother:
			lines[""]++
		case rest == "nothing":
			lines[name]--
		}
	}
	if s.name == "" {
		return lines[""]
	}
	return lines[""] + lines[s.name]
}

// hear returns what comes: as many values as expected, or all until nothing comes for a moment.
func (s *seat) hear(name string, commands, expected int) (all []answer) {
	patience, own := time.After(rig.Patience), 0
	for len(all) != expected {
		var quiet <-chan time.Time
		if expected < 0 && own >= commands {
			quiet = time.After(50 * time.Millisecond)
		}
		select {
		case a := <-s.heard:
			if all = append(all, a); a.of == name {
				own++
			}
		case <-quiet:
			return all
		case <-patience:
			return all
		}
	}
	return all
}

// whoHas tells where a key of "KEY in database N" is.
func (s *seat) whoHas(t *testing.T, c *rig.Cluster, key string) string {
	key, database, _ := strings.Cut(strings.ReplaceAll(key, "{n}", s.mark), " in database ")
	number, err := strconv.Atoi(database)
	if err != nil {
		t.Error(err)
	}
	has := func(server *rig.Server) bool {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), DB: number, MaxRetries: -1})
		defer client.Close()
		return client.Exists(t.Context(), key).Val() == 1
	}
	holders := 0
	for end := time.Now().Add(rig.Patience); holders < rig.Quorum && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		holders = 0
		for _, master := range c.Masters {
			if has(master) {
				holders++
			}
		}
	}
	switch hasUpstream := has(c.Upstream); {
	case hasUpstream:
		return "the upstream"
	case holders < rig.Quorum:
		return fmt.Sprintf("%d masters", holders)
	}
	return "a quorum of the masters, and not the upstream"
}

// masked hides what depends on the server and on the moment.
func masked(command []string, value rig.Value, line string) string {
	words := strings.ToUpper(strings.Join(append(command, ""), " "))
	switch {
	case strings.HasPrefix(words, "CLIENT SETINFO ") || strings.HasPrefix(words, "CLIENT MAINT_NOTIFICATIONS "):
		if value.Kind == '-' || value.Text == "OK" {
			return "+OK or an error: the client goes on"
		}
	case strings.HasPrefix(words, "CLIENT ID "):
		if value.Kind == ':' {
			return ":N"
		}
	case strings.HasPrefix(words, "INFO ") && value.Kind != '-':
		first, _, _ := strings.Cut(value.Text, "\r\n")
		return fmt.Sprintf("%q and so on", cmp.Or(first, "nothing"))
	case strings.HasPrefix(words, "HELLO ") && len(value.Items) > 0:
		hidden := rig.Value{Kind: value.Kind}
		for i := 0; i+1 < len(value.Items); i += 2 {
			switch name := value.Items[i]; name.Text {
			case "modules":
			case "id", "version":
				hidden.Items = append(hidden.Items, name, rig.Value{Text: "N"})
			default:
				hidden.Items = append(hidden.Items, name, value.Items[i+1])
			}
		}
		return show(hidden)
	}
	return line
}

// show writes a reply on one line: strings in quotes, arrays in brackets, maps in braces, and
// anything else with the first byte that it has on the wire.
func show(v rig.Value) string {
	var items []string
	for _, item := range v.Items {
		items = append(items, show(item))
	}
	switch {
	case v.Kind == 0:
		return v.Text
	case v.Kind == '%':
		return "{" + strings.Join(items, " ") + "}"
	case len(items) > 0 || v.Text == "0" && strings.IndexByte("*~>", v.Kind) >= 0:
		return strings.TrimPrefix(string(v.Kind), "*") + "[" + strings.Join(items, " ") + "]"
	case v.Kind == '$' && v.Text != "-1":
		return strconv.Quote(v.Text)
	}
	return string(v.Kind) + v.Text
}
