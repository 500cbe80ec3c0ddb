package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/integration/layer"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

// settings are what "proxy: a, b" may say of a proxy before it starts, and "reload: a, b" later.
var settings = map[string]func(s *config.Settings, args []string){
	"own":    func(s *config.Settings, _ []string) { setConnections(s, config.ConnectionsOwn) },
	"shared": func(s *config.Settings, _ []string) { setConnections(s, config.ConnectionsShared) },
	// upstream none
	"upstream": func(s *config.Settings, _ []string) { s.DialUpstream = nil },
	// users NAME=RIGHT NAME/PASSWORD=RIGHT: the password is pw if it is not said.
	"users": func(s *config.Settings, args []string) {
		var auth config.Auth
		for _, arg := range args {
			name, right, _ := strings.Cut(arg, "=")
			name, password, isSaid := strings.Cut(name, "/")
			if !isSaid {
				password = "pw"
			}
			auth.Users = append(auth.Users, config.User{Name: name, Password: endpoint.Secret(password), May: rights[right]})
		}
		s.Users = config.NewAccounts(auth, 0)
	},
	"password": func(s *config.Settings, args []string) {
		s.Users = config.NewAccounts(config.Auth{Password: endpoint.Secret(args[0]), May: config.RightBoth}, 0)
	},
	"anybody": func(s *config.Settings, args []string) {
		s.Users = config.NewAccounts(config.Auth{May: rights[args[0]]}, 0)
	},
	// logins TIME: the upstream judges them, and what it said holds for this time while it is away.
	"logins": func(s *config.Settings, args []string) {
		lasts, _ := time.ParseDuration(args[0])
		s.Users = config.NewAccounts(config.Auth{Upstream: true}, lasts)
	},
	// login USER PASSWORD DATABASE: the proxy's own
	"login": func(s *config.Settings, args []string) {
		db, _ := strconv.Atoi(args[2])
		s.Upstream = config.UpstreamLogin{User: args[0], Password: args[1], DB: db}
	},
	"database": func(s *config.Settings, args []string) { s.Upstream.DB, _ = strconv.Atoi(args[0]) },
	// rule PATTERN DATABASE
	"rule": func(s *config.Settings, args []string) {
		rule := route.Rule{Match: args[0], DB: route.AnyDB}
		if len(args) > 1 {
			rule.DB, _ = strconv.Atoi(args[1])
		}
		s.Router = &route.Router{Table: s.Router.Table, Rules: route.Rules{rule}}
	},
	// rules 1h PATTERN PATTERN: keys that move are held back for this time.
	"rules": func(s *config.Settings, args []string) {
		wait, _ := time.ParseDuration(args[0])
		var rules route.Rules
		for _, match := range args[1:] {
			rules = append(rules, route.Rule{Match: match, DB: route.AnyDB})
		}
		s.Router = s.Router.WithRules(rules, time.Now(), wait, wait)
	},
	// moved: the time of the last move is over.
	"moved": func(s *config.Settings, _ []string) {
		router := *s.Router
		router.Moves = []route.Move{{Was: router.Moves[0].Was}}
		s.Router = &router
	},
	"clients": func(s *config.Settings, args []string) {
		changeConfig(s, func(c *config.Config) { c.Limits.Clients, _ = strconv.Atoi(args[0]) })
	},
	"ignore": func(s *config.Settings, args []string) {
		changeConfig(s, func(c *config.Config) { c.Ignore = args })
	},
	"idle": func(s *config.Settings, args []string) {
		changeConfig(s, func(c *config.Config) { c.Limits.Idle, _ = time.ParseDuration(args[0]) })
	},
	// limit FIELD NUMBER, or a time: of config.Limits
	"limit": func(s *config.Settings, args []string) {
		changeConfig(s, func(c *config.Config) {
			number, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				lasts, _ := time.ParseDuration(args[1])
				number = int64(lasts)
			}
			reflect.ValueOf(&c.Limits).Elem().FieldByName(args[0]).SetInt(number)
		})
	},
	"bulk": func(s *config.Settings, args []string) {
		changeConfig(s, func(c *config.Config) { c.Limits.Bulk, _ = strconv.ParseInt(args[0], 10, 64) })
	},
}

var rights = map[string]config.Rights{"both": config.RightBoth, "locks": config.RightLocks, "upstream": config.RightUpstream}

func changeConfig(s *config.Settings, change func(*config.Config)) {
	changed := *s.Config
	change(&changed)
	s.Config = &changed
}

func setConnections(s *config.Settings, how string) {
	changeConfig(s, func(c *config.Config) { c.UpstreamConnections = how })
}

// upstreamGate leads to the upstream unless that is away.
type upstreamGate struct {
	isAway  atomic.Bool
	answers atomic.Int64 // how often the proxy's monitor has found it
}

// start starts the proxy that the first line of a dialogue describes.
func (s *stage) start(event string) {
	s.t.Helper()
	setup, isSetup := strings.CutPrefix(event, "proxy: ")
	if !isSetup {
		setup = ""
	}
	server := s.redis
	if strings.Contains(setup, withoutUpstream) {
		server = nil
	} else if server == nil {
		layer.Program(s.t, "redis-server", "redis-server")
	}
	start := startTestProxy
	if strings.Contains(setup, overTLS) {
		start = func(t *testing.T, redis *proxytest.Redis, configure ...func(*testConfig)) *testProxy {
			s.tls = startOverTLS(t, redis, "no", configure...)
			return s.tls.testProxy
		}
	}
	s.p = start(s.t, server, s.masters.configure, func(c *testConfig) {
		c.log = newTextLog(&s.log)
		c.UpstreamAnswers = s.answers.Load
		s.found = c.Unruled
		for option := range strings.SplitSeq(setup, ", ") {
			words := append(strings.Fields(option), "")
			switch {
			case words[0] == "console":
				withConsole(c)
			case words[0] == "untold": // the upstream has not told its commands yet
				changeConfig(&c.Settings, func(c *config.Config) { c.Upstream.Kind = config.UpstreamServer })
			case words[0] == "learned":
				table, err := route.Builtin().With(server.Commands(s.t))
				if err != nil {
					s.t.Fatal(err)
				}
				c.Router = c.Router.WithTable(table)
			case words[0] == "offers": // a subcommand of CLIENT that Redis has not
				subcommand := []any{"client|" + strings.ToLower(words[1]), int64(-3), []any{}, int64(0), int64(0), int64(0), []any{}, []any{}, []any{}, []any{}}
				table, err := route.Builtin().With([]any{[]any{"client", int64(-2), []any{}, int64(0), int64(0), int64(0), []any{}, []any{}, []any{}, []any{subcommand}}})
				if err != nil {
					s.t.Fatal(err)
				}
				c.Router = c.Router.WithTable(table)
			case settings[words[0]] != nil:
				settings[words[0]](&c.Settings, words[1:len(words)-1])
			case option != "" && option != withAndWithout && option != overTLS:
				s.t.Fatalf("no proxy can be set up so: %s", option)
			}
		}
		if dial := c.DialUpstream; dial != nil {
			c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
				if s.isAway.Load() {
					return nil, errors.New("it is away")
				}
				if address := s.scripted.Load(); address != nil {
					return net.Dial("tcp", *address)
				}
				return dial(ctx)
			}
			s.sent.configure(c)
		}
	})
}

// reload has other settings hold from now on.
func (s *stage) reload(what string) {
	s.p.change(func(now *config.Settings) {
		for option := range strings.SplitSeq(what, ", ") {
			words := strings.Fields(option)
			settings[words[0]](now, words[1:])
		}
	})
}

// scriptUpstream starts an upstream that lets each connection in with the first text, answers what comes then with the
// second, and closes it.
func (s *stage) scriptUpstream(texts []string) {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			for _, text := range texts {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, proxytest.Unquote(text))
			}
			_ = conn.Close()
		}
	}()
	address := listener.Addr().String()
	s.scripted.Store(&address)
}

// askServer is somebody else's command at the upstream.
func (s *stage) askServer(command string) string {
	s.t.Helper()
	line, _ := proxytest.Show([]byte(s.redis.Ask(s.t, s.filledIn(command))))
	return proxytest.Mask(line)
}

// happen plays an event that is no client's command. It returns lines if the event is a question.
func (s *stage) happen(turn turn) (speaks string, lines []string) {
	s.t.Helper()
	words := strings.Fields(turn.event)
	name, what, _ := strings.Cut(turn.event, " ")
	switch c := s.clients[name]; {
	case c != nil && what == "leaves":
		_ = c.Close()
		delete(s.clients, name)
	case c != nil && what == "is reset":
		_ = c.Conn.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
		delete(s.clients, name)
	case c != nil && what == "ends its side":
		c.halfClose()
	case what == "comes" && c == nil:
		s.client(name)
	case turn.event == "upstream goes away":
		s.isAway.Store(true)
	case turn.event == "upstream comes back":
		s.isAway.Store(false)
	case turn.event == "the monitor finds the upstream":
		s.answers.Add(1)
	case turn.event == "a second passes":
		time.Sleep(1100 * time.Millisecond)
	case strings.HasPrefix(turn.event, "until redis blocks "):
		eventually(s.t, turn.event, blockedClients(s.t, s.redis, words[3]))
	case turn.event == "until locks are slow":
		<-s.p.locks.entered
	case turn.event == "until the slow one is given up":
		<-s.p.locks.left
	case turn.event == "locks answer the slow one":
		close(s.p.locks.released)
	case strings.HasPrefix(turn.event, "locks hold "):
		s.p.locks.mu.Lock()
		s.p.locks.values[words[2]] = words[3]
		s.p.locks.mu.Unlock()
	case strings.HasPrefix(turn.event, "masters publish "):
		_, payload, _ := strings.Cut(turn.event, words[2]+" ")
		s.masters.publish(words[2], proxytest.Unquote(payload))
	case strings.HasPrefix(turn.event, "masters change"):
		s.masters.change(strings.Join(words[2:], " "))
	case turn.event == "masters lose messages":
		s.masters.gap()
	default:
		return "", s.answer(turn)
	}
	return name, nil
}

// answer answers a question. What it asks about may come a moment later, so it is asked until the answer
// is the recorded one.
func (s *stage) answer(turn turn) (lines []string) {
	s.t.Helper()
	if s.p == nil { // Redis has nothing of what is asked about
		return []string{}
	}
	if datatest.Rewriting() {
		s.untilQuiet("")
		time.Sleep(100 * time.Millisecond)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		var took func()
		if lines, took = s.look(turn.event); datatest.Rewriting() || slices.Equal(lines, turn.came) || turn.event == "users at once" || time.Now().After(deadline) {
			took()
			return append([]string{}, lines...)
		}
	}
}

// look answers a question now. took has the next question be about what comes from now on.
func (s *stage) look(question string) (lines []string, took func()) {
	s.t.Helper()
	took = func() {}
	words := strings.Fields(question)
	switch {
	case question == "locks got":
		s.p.locks.mu.Lock()
		defer s.p.locks.mu.Unlock()
		for i := s.locksTold; i < len(s.p.locks.calls); i++ {
			line := s.p.locks.calls[i]
			if db := s.p.locks.dbs[i]; db != 0 {
				line += fmt.Sprintf(" (database %d)", db)
			}
			lines = append(lines, line)
		}
		told := len(s.p.locks.calls)
		return lines, func() { s.locksTold = told }
	case question == "masters were asked":
		all := s.masters.requests()
		return all[s.mastersTold:], func() { s.mastersTold = len(all) }
	case question == "listeners":
		count := 0
		s.masters.each(func(*fakeSubscriber) { count++ })
		return []string{strconv.Itoa(count)}, took
	case question == "upstream got":
		all := s.sent.all()
		for rest := all[s.sentTold:]; len(rest) > 0; {
			var line string
			if line, rest = proxytest.Show(rest); line == "" {
				break
			}
			lines = append(lines, strings.ReplaceAll(strings.Trim(line, "[]"), `"`, ""))
		}
		return lines, func() { s.sentTold = len(all) }
	case question == "sessions":
		return []string{strconv.Itoa(s.p.sessionCount())}, took
	case question == "memory":
		return []string{strconv.FormatInt(int64(s.p.env.Budget.InUse()), 10)}, took
	case question == "users at once":
		for _, known := range s.p.clients.Known() {
			lines = append(lines, known.User)
		}
		return lines, took
	case question == "known":
		for _, k := range s.p.clients.Known() {
			lines = append(lines, fmt.Sprintf("%s user=%s db=%d resp=%d waits on %s", k.Name, k.User, k.DB, k.RESP, k.WaitsOn))
		}
		slices.Sort(lines)
		return lines, took
	case question == "shared":
		open, _ := s.p.env.Upstream.Counts()
		return []string{strconv.Itoa(open)}, took
	case question == "connections":
		return []string{strconv.Itoa(connectionsOf(s.t, s.redis))}, took
	case words[0] == "metric":
		return []string{strconv.Itoa(s.p.counter(s.t, words[1], strings.Join(words[2:], " ")))}, took
	case question == "found":
		for _, f := range s.found.Found(s.p.current.Load().Router.Rules, s.p.current.Load().Ignore) {
			lines = append(lines, fmt.Sprintf("%s %d", f.Match, f.Uses))
		}
		return lines, took
	case words[0] == "log":
		for line := range strings.Lines(s.log.String()) {
			if _, text, ok := strings.Cut(line, " level="); ok && strings.Contains(line, strings.Join(words[1:], " ")) {
				lines = append(lines, proxytest.Mask(strings.TrimSpace(text)))
			}
		}
		return lines, took
	}
	s.t.Fatalf("nobody knows the event: %s", question)
	return nil, nil
}
