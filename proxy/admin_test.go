package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

func startTestAdmin(t *testing.T, reg *prometheus.Registry, ready func() readiness) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	admin := newAdminServer(reg, ready, nil, testPage(), config.Demo)
	served := make(chan error, 1)
	go func() { served <- admin.serve(listener) }()
	t.Cleanup(func() {
		admin.close(context.Background())
		if err := <-served; err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	return listener.Addr().String()
}

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

func TestAdminAnswers(t *testing.T) {
	now := readiness{false, "not ready: 2 of 5 lock masters vote, 3 needed"}
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.Forwarded(1)
	address := startTestAdmin(t, reg, func() readiness { return now })
	for _, row := range []struct {
		path   string
		status int
		body   string
	}{
		{"/healthz", 200, "ok\n"},
		{"/readyz", 503, "not ready: 2 of 5 lock masters vote, 3 needed\n"},
		{"/nothing", 404, "404 page not found\n"},
	} {
		if status, body := fetch(t, "http://"+address+row.path); status != row.status || body != row.body {
			t.Errorf("%s: %d %q", row.path, status, body)
		}
	}
	now = readiness{true, "ready: 3 of 5 lock masters vote, 3 needed\nm2:1 is unreachable"}
	if status, body := fetch(t, "http://"+address+"/readyz"); status != 200 || body != now.text+"\n" {
		t.Errorf("/readyz: %d %q", status, body)
	}
	if status, body := fetch(t, "http://"+address+"/metrics"); status != 200 || !strings.Contains(body, "\nredlock_forwarded_commands_total 1\n") {
		t.Errorf("/metrics: %d\n%s", status, body)
	}
}

// A mistake in the file of a running process, or in the files that it names, does not make
// the process unhealthy.
func TestHealthcheck(t *testing.T) {
	address := startTestAdmin(t, prometheus.NewRegistry(), func() readiness { return readiness{} })
	_, port, _ := net.SplitHostPort(address)
	file := filepath.Join(t.TempDir(), "config.yaml")
	check := func(text string) error {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Healthcheck(t.Context(), file, "")
	}
	for _, text := range []string{
		"admin: " + address,
		"admin: 0.0.0.0:" + port,
		"admin: :" + port,
		"admin: '" + address + "' # for us\nnonsense: 1",
		"upstream: nonsense\nadmin: " + address,
		"upstream: [\nadmin: \"" + address + "\"\nmasters: }",
		"\tnonsense\r\nadmin: " + address + "\r\n",
		"admin: " + address + "\ntls: {listen: \":1\", cert_file: /missing, key_file: /missing}",
		"admin: " + address + "\nauth: {password_file: /missing}",
	} {
		if err := check(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := check(`admin: ""`); err == nil || !strings.Contains(err.Error(), "admin is empty") {
		t.Errorf("without an admin address: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := check("admin: " + listener.Addr().String()); err == nil {
		t.Error("nobody listens, and the check is fine")
	}
	if err := Healthcheck(t.Context(), file, address); err != nil {
		t.Errorf("with -admin, which names a process: %v", err)
	}
	for _, text := range []string{"", "admin: nonsense", "admin: [1]"} {
		check(text)
		if got := adminAddress(file); got != config.Demo().Admin {
			t.Errorf("%q: asked at %s", text, got)
		}
	}
	if got := adminAddress(file + "-missing"); got != config.Demo().Admin {
		t.Errorf("without a file: asked at %s", got)
	}
}

// The admin address has no password, so only somebody on this machine may change
// something. The answer says what the result was.
func TestReloadIsAskedForOnTheMachineOnly(t *testing.T) {
	var refusal error
	asked, moved := 0, false
	admin := newAdminServer(prometheus.NewRegistry(), nil, func(_ context.Context, moveKeys bool) (string, error) {
		asked, moved = asked+1, moveKeys
		return "reloaded\nand more", refusal
	}, testPage(), config.Demo)
	web := httptest.NewServer(admin.http.Handler)
	defer web.Close()
	cfg := config.Demo()
	cfg.Admin = strings.TrimPrefix(web.URL, "http://")
	for i, moveKeys := range []bool{false, true} {
		if report, err := AskReload(t.Context(), cfg, moveKeys); report != "reloaded\nand more" || err != nil || asked != i+1 || moved != moveKeys {
			t.Errorf("asked for %d times: %q, %v", asked, report, err)
		}
	}
	refusal = errors.New("f:3: nonsense is not known here")
	if _, err := AskReload(t.Context(), cfg, false); err == nil || !strings.Contains(err.Error(), "the running proxy refused the reload, and its old configuration stays active\nf:3: nonsense is not known here") || asked != 3 {
		t.Errorf("a reload that is refused, asked for %d times: %v", asked, err)
	}
	if status, _ := fetch(t, web.URL+"/reload"); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	for _, ends := range []struct {
		remote, local string
		allowed       bool
	}{
		{"192.0.2.1:5000", "192.0.2.1:9380", true},
		{"[::ffff:192.0.2.1]:5000", "192.0.2.1:9380", true},
		{"[::1]:5000", "[::1]:9380", true},
		{"192.0.2.2:5000", "192.0.2.1:9380", false},
		{"@", "192.0.2.1:9380", false},
	} {
		local, _ := net.ResolveTCPAddr("tcp", ends.local)
		request := httptest.NewRequest(http.MethodPost, "/reload", nil)
		request = request.WithContext(context.WithValue(request.Context(), http.LocalAddrContextKey, local))
		request.Header.Set(reloadHeader, "1")
		request.Host, request.RemoteAddr = ends.local, ends.remote
		answer := httptest.NewRecorder()
		admin.http.Handler.ServeHTTP(answer, request)
		if allowed := answer.Code != http.StatusForbidden; allowed != ends.allowed {
			t.Errorf("from %s to %s: %d", ends.remote, ends.local, answer.Code)
		}
	}
	if asked != 6 {
		t.Errorf("asked for %d times", asked)
	}
}

// A web page in an operator's browser neither reads nor changes anything, whichever name leads to
// the admin address. Probes ask by names that nobody lists.
func TestWebPagesAreRefused(t *testing.T) {
	cfg := config.Demo()
	cfg.Admin, cfg.AdminHosts = "db.example:9380", []string{"locks.example.com"}
	reloads := 0
	admin := newAdminServer(prometheus.NewRegistry(), func() readiness { return readiness{ready: true} }, func(context.Context, bool) (string, error) {
		reloads++
		return "", nil
	}, testPage(), func() *config.Config { return cfg })
	status := func(method, path, host string, headers ...string) int {
		request := httptest.NewRequest(method, path, nil)
		request.Host, request.RemoteAddr = host, "127.0.0.1:5000"
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		answer := httptest.NewRecorder()
		admin.http.Handler.ServeHTTP(answer, request)
		return answer.Code
	}
	for _, host := range []string{"localhost", "LOCALHOST.:9380", "127.0.0.1:9380", "[::1]:9380", "10.0.0.7", "::1", "db.example:9380", "Locks.Example.com.:443", ""} {
		if got := status(http.MethodGet, "/status.json", host); got != http.StatusOK {
			t.Errorf("asked as %q: %d", host, got)
		}
	}
	for _, host := range []string{"evil.example:9380", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "locks.example.com.evil.example", "["} {
		for _, path := range []string{"/", "/status.json", "/events", "/locks.json", "/nothing"} {
			if got := status(http.MethodGet, path, host); got != http.StatusForbidden {
				t.Errorf("%s asked as %q: %d", path, host, got)
			}
		}
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			if got := status(http.MethodGet, path, host); got != http.StatusOK {
				t.Errorf("%s asked as %q: %d", path, host, got)
			}
		}
		if got := status(http.MethodPost, "/reload", host, reloadHeader, "1"); got != http.StatusForbidden {
			t.Errorf("a reload asked for as %q: %d", host, got)
		}
	}
	for _, headers := range [][]string{
		{},
		{"Origin", "http://localhost:9380"},
		{"Origin", "http://evil.example", reloadHeader, "1"},
		{"Origin", "null", reloadHeader, "1"},
		{"Sec-Fetch-Site", "cross-site", reloadHeader, "1"},
		{"Sec-Fetch-Site", "same-site", reloadHeader, "1"},
	} {
		if got := status(http.MethodPost, "/reload?move-keys", "localhost:9380", headers...); got != http.StatusForbidden {
			t.Errorf("a reload with %q: %d", headers, got)
		}
	}
	if reloads > 0 {
		t.Errorf("%d reloads", reloads)
	}
	if got := status(http.MethodPost, "/reload", "localhost:9380", reloadHeader, "1"); got != http.StatusOK || reloads != 1 {
		t.Errorf("a reload by the program: %d", got)
	}
}

// Every method moves its own metric, under the names that dashboards use.
func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	var _ redlock.Observer = m
	m.LockCommand("acquire", "won", "lock:*", 0.002)
	m.Voted("a:1", redlock.Granted, time.Millisecond, time.Now())
	m.Voted("a:1", redlock.Failed, time.Second, time.Now())
	m.Decided(redlock.KindAcquire, redlock.Lost, time.Millisecond)
	m.Undone("a:1")
	m.Queued("a:1", 7)
	m.Forgot("a:1", redlock.ClockJumped)
	m.Forwarded(1)
	m.ClientConnected()
	m.ClientConnected()
	m.ClientGone()
	m.ProtocolError()
	m.UpstreamDialFailed()
	m.PanicRecovered()
	m.Refused(wire.ErrCrossLock.Code())
	m.Refused(wire.ErrMoving(time.Now()).Code())
	m.Refused(wire.ErrMoving(time.Now()).Code())
	m.Refused(wire.ErrNotALock([]byte("a")).Code())
	m.Refused(wire.ErrReservedKey.Code())
	_, body := fetch(t, "http://"+startTestAdmin(t, reg, func() readiness { return readiness{ready: true} })+"/metrics")
	for _, want := range []string{
		`redlock_lock_commands_total{kind="acquire",rule="lock:*",verdict="won"} 1`,
		`redlock_lock_command_duration_seconds_sum{kind="acquire"} 0.002`,
		`redlock_votes_total{master="a:1",vote="granted"} 1`,
		`redlock_votes_total{master="a:1",vote="failed"} 1`,
		`redlock_vote_duration_seconds_count{master="a:1"} 1`,
		`redlock_ballot_duration_seconds_count{kind="acquire",verdict="lost"} 1`,
		`redlock_undone_grants_total{master="a:1"} 1`,
		`redlock_queued_for_master{master="a:1"} 7`,
		`redlock_master_quarantines_begun_total{cause="clock_jumped",master="a:1"} 1`,
		`redlock_forwarded_commands_total 1`,
		`redlock_clients_connected 1`,
		`redlock_protocol_errors_total 1`,
		`redlock_upstream_dial_failures_total 1`,
		`redlock_panics_recovered_total 1`,
		`redlock_refused_commands_total{reason="crosslock"} 1`,
		`redlock_refused_commands_total{reason="tryagain"} 2`,
		`redlock_refused_commands_total{reason="noupstream"} 1`,
		`redlock_build_info{goversion="` + runtime.Version() + `",revision="` + thisBuild().revision + `",version="` + number + `"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if _, err := newMetrics(reg); err == nil {
		t.Error("a second set of metrics was registered")
	}
}

// A counter that begins with its first 1 shows no increase, so all that can come
// of a rule's locks is there from the start, and what was of a rule that is gone
// is not.
func TestLockCommandsAreCountedFromZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Demo()
	show := func(rules ...route.Rule) string {
		cfg.Locks = rules
		m.ShowSettings(shownOf(cfg, time.Now()))
		_, body := fetch(t, "http://"+startTestAdmin(t, reg, func() readiness { return readiness{} })+"/metrics")
		return body
	}
	body := show(route.Rule{Match: "lock:*", DB: route.AnyDB}, route.Rule{Match: "\xff*", DB: route.AnyDB})
	for kind := redlock.KindAcquire; kind <= redlock.KindRun; kind++ {
		for _, verdict := range []string{"won", "lost", "noquorum", "error"} {
			for _, rule := range []string{"lock:*", "?*"} {
				want := fmt.Sprintf(`redlock_lock_commands_total{kind="%s",rule="%s",verdict="%s"} 0`, kind, rule, verdict)
				if !strings.Contains(body, want+"\n") {
					t.Errorf("no %s", want)
				}
			}
		}
	}
	m.LockCommand("acquire", "won", "lock:*", 0.001)
	body = show(route.Rule{Match: "lock:*", DB: route.AnyDB}, route.Rule{Match: "mutex:*", DB: route.AnyDB})
	if strings.Contains(body, `rule="?*"`) || !strings.Contains(body, `{kind="swap",rule="mutex:*",verdict="lost"} 0`) || !strings.Contains(body, `{kind="acquire",rule="lock:*",verdict="won"} 1`) {
		t.Errorf("after a reload:\n%s", body)
	}
}
