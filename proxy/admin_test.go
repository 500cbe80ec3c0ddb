package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/redlock"
)

// testPage shows one master that votes.
func testPage() *console.Page {
	journal := events.New(slog.New(slog.DiscardHandler))
	return console.NewPage(console.New(console.Config{
		Active:  config.NewActive(&config.Settings{Config: config.Demo(), Router: new(route.Router)}),
		Journal: journal,
		Masters: func() events.State {
			return journal.Masters(redlock.Status{Needed: 1, Masters: []redlock.MasterStatus{{Name: "m1:1", State: redlock.Voting}}})
		},
		Clients:  func() []events.ClientInfo { return nil },
		Unruled:  unruled.New(slog.New(slog.DiscardHandler)),
		Version:  "a test",
		Draining: func() bool { return false },
		Notes:    func() []string { return nil },
		Upstream: func() string { return "" },
	}))
}

func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// The script testdata/admin.txt asks the admin address. ADDRESS and PORT are its own. The events are
//
//	not ready: 2 of 5 vote      what /readyz is to say. "ready: ..."
//	GET /readyz [host=a:1] [from=192.0.2.2:5000] [to=192.0.2.1:9380] [Header=value]
//	                            the status, and the text of a short answer
//	reloads are refused TEXT    from now on
//	-reload [-move-keys]        what the program says
//	| admin: ADDRESS            a line of a file
//	-healthcheck [-admin ADDRESS]
//	                            with this file, of which only the admin address is read
//	asked at                    this address
//	closed                      the address
func TestAdmin(t *testing.T) {
	datatest.Play(t, "testdata/admin.txt", func(t *testing.T, told *datatest.Script) {
		s := &adminScript{Script: told, t: t, file: filepath.Join(t.TempDir(), "config.yaml"), now: readiness{true, "ready: 3 of 5 vote"}}
		s.cfg = config.Demo()
		s.cfg.Admin, s.cfg.AdminHosts = "db.example:9380", []string{"locks.example.com"}
		s.admin = newAdminServer(prometheus.NewRegistry(), func() readiness { return s.now }, s.reload, testPage(), func() *config.Config { return s.cfg })
		s.web = httptest.NewServer(s.admin.http.Handler)
		defer s.web.Close()
		isWhole := false
		for event := range told.Events {
			line, isText := strings.CutPrefix(event, "| ")
			if isText && isWhole {
				s.text = ""
			}
			if isWhole = !isText; isText {
				s.text += s.filledIn(line) + "\n"
				continue
			}
			s.do(event, strings.Fields(event))
		}
	})
}

type adminScript struct {
	*datatest.Script
	t          *testing.T
	admin      *adminServer
	web        *httptest.Server
	cfg        *config.Config
	now        readiness
	refusal    error
	file, text string
}

func (s *adminScript) reload(_ context.Context, moveKeys bool) (string, error) {
	s.Printf("it reloads, and moves keys: %v", moveKeys)
	return "reloaded\nand more", s.refusal
}

func (s *adminScript) filledIn(text string) string {
	address := s.web.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	return strings.NewReplacer("ADDRESS", address, "PORT", port, `\t`, "\t").Replace(text)
}

// masked is filledIn the other way.
func (s *adminScript) masked(text string) string {
	return strings.ReplaceAll(text, s.web.Listener.Addr().String(), "ADDRESS")
}

func (s *adminScript) do(event string, words []string) {
	switch words[0] {
	case "ready:", "not":
		s.now = readiness{words[0] == "ready:", strings.ReplaceAll(event, `\n`, "\n")}
	case "reloads":
		s.refusal = errors.New(strings.TrimPrefix(event, "reloads are refused "))
	case "-reload":
		cfg := config.Demo()
		cfg.Admin = s.web.Listener.Addr().String()
		report, err := AskReload(s.t.Context(), cfg, len(words) > 1)
		if err != nil {
			report = err.Error()
		}
		s.Printf("%s", report)
	case "-healthcheck":
		if err := os.WriteFile(s.file, []byte(s.text), 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := Healthcheck(s.t.Context(), s.file, s.filledIn(strings.Join(words[min(len(words), 2):], ""))); err != nil {
			s.Printf("%s", s.masked(err.Error()))
		} else {
			s.Printf("it is alive")
		}
	case "asked":
		if err := os.WriteFile(s.file, []byte(s.text), 0o600); err != nil {
			s.t.Fatal(err)
		}
		s.Printf("%s, and without a file %s", s.masked(adminAddress(s.file)), adminAddress(s.file+"-missing"))
	case "closed":
		s.web.Close()
	default:
		s.asks(words[0], words[1], words[2:])
	}
}

func (s *adminScript) asks(method, path string, with []string) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	if path == "/events" {
		cancel() // else it lasts
	}
	request := httptest.NewRequest(method, path, nil)
	request.Host, request.RemoteAddr = "localhost", "127.0.0.1:5000"
	for _, word := range with {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "host":
			request.Host = value
		case "from":
			request.RemoteAddr = value
		case "to":
			local, _ := net.ResolveTCPAddr("tcp", value)
			ctx, request.Host = context.WithValue(ctx, http.LocalAddrContextKey, local), value
		default:
			request.Header.Set(key, value)
		}
	}
	answer := httptest.NewRecorder()
	s.admin.http.Handler.ServeHTTP(answer, request.WithContext(ctx))
	text := answer.Body.String()
	if len(text) > 200 {
		text = ""
	}
	s.Printf("%s", strings.TrimSpace(http.StatusText(answer.Code)+": "+text))
}

// A counter that begins with its first 1 shows no increase, so all that can come of a rule's locks is there from the start.
// The metrics have this program's names.
func TestLockCommandsAreCountedFromZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Demo()
	cfg.Locks = route.Rules{{Match: "lock:*", DB: route.AnyDB}, {Match: "\xff*", DB: route.AnyDB}}
	m.ShowSettings(shownOf(cfg, time.Now()))
	web := httptest.NewServer(newAdminServer(reg, nil, nil, testPage(), config.Demo).http.Handler)
	defer web.Close()
	_, body := fetch(t, web.URL+"/metrics")
	for _, verdict := range []string{"won", "lost", "noquorum", "error"} {
		for _, rule := range []string{"lock:*", "?*"} {
			if want := `redlock_lock_commands_total{kind="acquire",rule="` + rule + `",verdict="` + verdict + "\"} 0\n"; !strings.Contains(body, want) {
				t.Errorf("no %s", want)
			}
		}
	}
	if !strings.Contains(body, `revision="`+thisBuild().revision+`",version="`+number+`"} 1`) {
		t.Error("no build is shown")
	}
}
