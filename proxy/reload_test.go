package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

// reloadable is a whole proxy over real servers whose file can be rewritten.
type reloadable struct {
	*Proxy
	t    *testing.T
	file string
	base string
	log  *proxytest.Log
}

func startReloadable(t *testing.T, upstream *proxytest.Redis, masters ...*proxytest.Redis) *reloadable {
	t.Helper()
	r := &reloadable{t: t, file: filepath.Join(t.TempDir(), "config.yaml"), log: &proxytest.Log{}}
	r.base = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: unix://" + upstream.Socket + "\nmasters:\n"
	for _, master := range masters {
		r.base += "  - unix://" + master.Socket + "\n"
	}
	r.base += "master_timeout: 2s\nrestart_delay: 4s\nlocks:\n  - match: \"lock:*\"\n"
	r.write(r.base)
	cfg, err := config.Load(r.file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.NewSet = true
	log, level := config.NewLogger(cfg, r.log)
	if r.Proxy, err = New(cfg, log, level, prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	waitReady(t, r.Proxy)
	return r
}

func (r *reloadable) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload writes the file with one thing replaced, or something added to its
// end, and reloads it.
func (r *reloadable) reload(from, to string) error {
	r.t.Helper()
	if from == "" {
		r.write(r.base + to)
	} else {
		r.write(strings.Replace(r.base, from, to, 1))
	}
	_, err := r.Reload(r.t.Context(), false)
	return err
}

func (r *reloadable) metric(name string) string {
	r.t.Helper()
	_, body := fetch(r.t, "http://"+r.web.Addr().String()+"/metrics")
	for line := range strings.Lines(body) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// A bad file changes nothing at all, not even what is good in it, and says so.
func TestReloadIsAllOrNothing(t *testing.T) {
	servers := startGuardRedises(t, 4)
	r := startReloadable(t, servers[3], servers[:3]...)
	before, hash := r.current.Load(), r.metric("redlock_config_hash")
	replica := proxytest.StartRedis(t, "--replicaof", "127.0.0.1 1")
	secret := proxytest.StartRedis(t, "--requirepass", proxytest.Password)
	for i, row := range []struct{ from, to, want string }{
		{"", "limits: {clients: 5}\nnonsense: 1\n", r.file + `:13: "nonsense" is not known here`},
		{"", "limits: {clients: 5}\nlog: {level: debug, format: json}\n", r.file + ":13: log.format: cannot be changed"},
		{"unix://" + servers[2].Socket, "unix://" + servers[2].Socket + "0\nlimits: {clients: 5}", "cannot be used: "}, // a good change beside a bad one
		{"unix://" + servers[2].Socket, "unix://" + servers[2].Socket + "0", r.file + ":7: masters[2]: " + servers[2].Socket + "0 cannot be used: "},
		{"unix://" + servers[2].Socket, "unix://" + secret.Socket, r.file + ":7: masters[2]: " + secret.Socket + " cannot be used: NOAUTH"},
		{"unix://" + servers[2].Socket, "unix://" + replica.Socket, "it is a replica of another server"},
		{"unix://" + servers[2].Socket, "unix://:wrong@" + servers[2].Socket, " does not accept the new credentials: ERR AUTH <password> called without any password"},
		{"", "nonsense: 1\nmore: 2\n", "config.yaml:12: \"nonsense\" is not known here"},
		{"unix://" + servers[3].Socket, "unix://" + servers[3].Socket + "0", r.file + ":3: upstream: " + servers[3].Socket + "0 cannot be used: "},
	} {
		err := r.reload(row.from, row.to)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%d: %v", i, err)
		} else if !strings.Contains(r.log.String(), "configuration not reloaded, the old one stays active") {
			t.Errorf("%d: nothing is logged", i)
		}
	}
	if now := r.current.Load(); now.Limits.Clients != before.Limits.Clients || r.level.Level() != slog.LevelInfo {
		t.Error("something was applied")
	}
	if r.metric(`redlock_config_reloads_total{result="refused"}`) != "9" || r.metric("redlock_config_last_reload_successful") != "0" || r.metric("redlock_config_hash") != hash {
		t.Error("the metrics do not show it")
	}
	if n := strings.Count(r.log.String(), "configuration not reloaded"); n != 9 { // also if there are several reasons
		t.Errorf("%d lines for 9 refusals:\n%s", n, r.log.String())
	}
	r.write(r.base)
	if report, err := r.Reload(t.Context(), false); err != nil || report != "configuration reloaded from "+r.file {
		t.Errorf("%q, %v", report, err)
	}
	for range 3 {
		r.admin.http.ErrorLog.Print("the HTTP server's own line")
	}
	const line = "level=WARN msg=\"the HTTP server of the admin address had an error; raise the limit of open files if that is the cause\" error=\"the HTTP server's own line\"\n"
	if strings.Count(r.log.String(), line) != 1 || strings.Count(r.log.String(), "own line") != 1 {
		t.Error("the HTTP server writes past the log, or without end")
	}
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reload(t.Context(), false); err == nil {
		t.Error("a missing file was reloaded")
	}
}

// A session with an upstream connection of its own keeps it, all others go to the new one.
func TestReloadMovesTheUpstream(t *testing.T) {
	servers := startGuardRedises(t, 5)
	r := startReloadable(t, servers[3], servers[:3]...)
	address := r.listener.Addr().String()
	open, idle := dialTest(t, "tcp", address), dialTest(t, "tcp", address)
	open.ask("SET where old\r\nEVAL \"return 1\" 0\r\n", "+OK\r\n:1\r\n")
	idle.ask("PING\r\n", "+PONG\r\n")
	if err := r.reload(servers[3].Socket, servers[4].Socket); err != nil {
		t.Fatal(err)
	}
	late := dialTest(t, "tcp", address)
	open.ask("GET where\r\n", "$3\r\nold\r\n")
	idle.ask("GET where\r\n", "$-1\r\n")
	late.ask("GET where\r\n", "$-1\r\n")
	open.ask("SET lock:a me NX PX 60000\r\n", "+OK\r\n")
	late.ask("SET lock:a you NX PX 60000\r\n", "$-1\r\n")
	if want := "changed=\"upstream: " + servers[3].Socket + " -> " + servers[4].Socket + "\""; !strings.Contains(r.log.String(), want) {
		t.Errorf("no %s in\n%s", want, r.log.String())
	}
}

// Rules, log level, limits and how the masters are asked change under clients
// that stay connected, and the metrics tell.
func TestReloadApplies(t *testing.T) {
	servers := startGuardRedises(t, 4)
	r := startReloadable(t, servers[3], servers[:3]...)
	client := redis.NewClient(&redis.Options{Addr: r.listener.Addr().String(), MaxRetries: -1, PoolSize: 1})
	defer client.Close()
	if err := client.SetNX(t.Context(), "lock:a", "me", 0).Err(); err != nil {
		t.Fatal(err)
	}
	hash := r.metric("redlock_config_hash")
	if err := r.reload("restart_delay: 4s\nlocks:\n  - match: \"lock:*\"\n",
		"restart_delay: 5s\nlocks:\n  - match: \"lock:*\"\n    default_ttl: 1m\n  - match: \"lock:cron:*\"\nlog: {level: debug}\n"); err != nil {
		t.Fatal(err)
	}
	if r.metric("redlock_config_hash") == hash || r.metric("redlock_config_last_reload_successful") != "1" || r.metric(`redlock_config_reloads_total{result="applied"}`) != "1" {
		t.Error("the metrics do not show it")
	}
	if r.level.Level() != slog.LevelDebug {
		t.Errorf("the log's level is %v", r.level.Level())
	}
	if err := client.SetNX(t.Context(), "lock:b", "me", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if ttl := client.TTL(t.Context(), "lock:b").Val(); ttl <= 0 {
		t.Errorf("a lock under the new rule has TTL %v", ttl)
	}
	if stats := client.PoolStats(); stats.Misses != 1 {
		t.Errorf("the client connected %d times", stats.Misses)
	}
	// The same file again changes nothing, which is worth saying too.
	if _, err := r.Reload(t.Context(), false); err != nil || !strings.Contains(r.log.String(), "changed=nothing") {
		t.Errorf("again: %v", err)
	}
}

// A reload that moves keys needs -move-keys, and without it the error says what the reload
// would cost. Everybody can see the move while it lasts. Mistyped rules can be put right at
// once.
func TestReloadMovesKeysOnlyByName(t *testing.T) {
	servers := startGuardRedises(t, 4)
	r := startReloadable(t, servers[3], servers[:3]...)
	client := dialTest(t, "tcp", r.listener.Addr().String())
	client.ask("SET lock:a me NX PX 60000\r\nSET job:a me NX PX 60000\r\n", "+OK\r\n+OK\r\n")
	const leaves, comes = `commands on keys of "lock:*" are answered TRYAGAIN until 2`, `commands on keys of "lokc:*" are answered TRYAGAIN until 2`
	err := r.reload("lock:*", "lokc:*")
	if err == nil || !strings.Contains(err.Error(), "-reload -move-keys") || !strings.Contains(err.Error(), "\nwith -move-keys "+leaves) || !strings.Contains(err.Error(), "\nwith -move-keys "+comes) {
		t.Fatalf("a reload that was not told to move keys: %v", err)
	}
	client.ask("SET lock:a you NX PX 60000\r\n", "$-1\r\n")
	if r.metric("redlock_moving_rules") != "0" || strings.Contains(r.readiness().text, "TRYAGAIN") {
		t.Error("keys are shown as moving")
	}
	report, err := r.Reload(t.Context(), true)
	if err != nil || !strings.Contains(report, leaves) || !strings.Contains(report, comes) {
		t.Fatalf("the reload that moves keys: %q, %v", report, err)
	}
	refusal := string(wire.ErrMoving(r.heldBack("lock:a")))
	client.ask("SET lock:a you NX PX 60000\r\n", refusal)
	info := string(r.appendInfo(nil))
	for _, shown := range []string{r.readiness().text, r.log.String()} {
		if !strings.Contains(strings.ReplaceAll(shown, `\"`, `"`), leaves) {
			t.Errorf("nothing is said of keys that have moved in\n%s", shown)
		}
	}
	if !r.readiness().ready || !strings.Contains(info, "redlock_moving_rule1:until=2") || !strings.Contains(info, `,rule="lock:*"`) {
		t.Errorf("INFO:\n%s", info)
	}
	if r.metric("redlock_moving_rules") != "2" || r.metric(`redlock_moving_rule_end_timestamp_seconds{rule="lokc:*"}`) == "" {
		t.Error("the metrics do not show it")
	}
	if err := r.reload("", ""); err == nil || !strings.Contains(err.Error(), "with -move-keys all keys can be used at once") {
		t.Errorf("the way back, which moves keys as well: %v", err)
	}
	if report, err = r.Reload(t.Context(), true); err != nil || strings.Contains(report, "TRYAGAIN") {
		t.Errorf("the way back: %q, %v", report, err)
	}
	client.ask("SET lock:a you NX PX 60000\r\nGET lock:a\r\nSET lokc:a me NX\r\n", "$-1\r\n$2\r\nme\r\n+OK\r\n")
	if r.metric("redlock_moving_rules") != "0" {
		t.Error("keys are shown as moving when they are back")
	}
}

func startGuardRedises(t *testing.T, n int) []*proxytest.Redis {
	t.Helper()
	servers := make([]*proxytest.Redis, n)
	for i := range servers {
		servers[i] = proxytest.StartRedis(t)
	}
	return servers
}

// A master is replaced by a server that was never one: it has to sit out its
// quarantine while the others go on.
func TestReloadReplacesAMaster(t *testing.T) {
	t.Parallel() // it waits most of its time
	servers := startGuardRedises(t, 5)
	r := startReloadable(t, servers[4], servers[:3]...)
	client := dialTest(t, "tcp", r.listener.Addr().String())
	client.ask("SET lock:a me NX PX 60000\r\n", "+OK\r\n")
	if err := r.reload(servers[2].Socket, servers[3].Socket); err != nil {
		t.Fatal(err)
	}
	client.ask("SET lock:a you NX PX 60000\r\n", "$-1\r\n")
	client.ask("SET lock:b me NX PX 60000\r\n", "+OK\r\n")
	name := servers[3].Socket
	eventually(t, "the new master is in quarantine", func() bool {
		return r.metric(fmt.Sprintf(`redlock_master_state{master=%q,state="quarantined"}`, name)) == "1"
	})
	if r.metric("redlock_set_epoch") != "2" || r.metric("redlock_ready") != "1" {
		t.Errorf("epoch %s, ready %s", r.metric("redlock_set_epoch"), r.metric("redlock_ready"))
	}
	if r.metric(fmt.Sprintf(`redlock_master_quarantine_end_timestamp_seconds{master=%q}`, name)) == "" {
		t.Error("the end of the quarantine is not shown")
	}
	_, body := fetch(t, "http://"+r.web.Addr().String()+"/metrics")
	if strings.Contains(body, servers[2].Socket) {
		t.Error("the metrics still show the master that was replaced")
	}
}

// A process that is told to end does not wait for a reload, not even for one
// that hangs with its file.
func TestTheEndDoesNotWaitForAReload(t *testing.T) {
	cfg := config.Demo()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Source = filepath.Join(t.TempDir(), "config.yaml")
	if err := syscall.Mkfifo(cfg.Source, 0o600); err != nil { // who reads it waits for who writes
		t.Fatal(err)
	}
	log, level := config.NewLogger(cfg, io.Discard)
	p, err := New(cfg, log, level, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	reloaded := make(chan error, 1)
	go func() {
		_, err := p.Reload(context.Background(), false)
		reloaded <- err
	}()
	var writer *os.File
	for writer == nil {
		// It can be opened when somebody reads.
		writer, _ = os.OpenFile(cfg.Source, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(over) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(patience):
		t.Error("the process waits for a reload")
	}
	writer.Write([]byte("upstream: none\nmasters: embedded\n"))
	writer.Close()
	if err := <-reloaded; err == nil {
		t.Error("a process that had ended was reloaded")
	}
}

// heldBack is until when a key of database 0 has to wait.
func (r *reloadable) heldBack(key string) time.Time {
	router, args := r.current.Load().Router, [][]byte{[]byte("GET"), []byte(key)}
	return router.HeldBack(0, args, router.Route(0, args), time.Now())
}

// A reload asks a server once, to judge it, and what the process shows of it comes from the same answers.
func TestAReloadAsksEachMasterOnce(t *testing.T) {
	master := proxytest.StartRedis(t)
	r := startReloadable(t, proxytest.StartRedis(t), master)
	asked := func() (calls int) {
		_, stats, _ := strings.Cut(master.Ask(t, "INFO commandstats"), "cmdstat_config|get:calls=")
		if _, err := fmt.Sscanf(stats, "%d", &calls); err != nil {
			t.Fatal(err)
		}
		return calls
	}
	before, answers := asked(), r.monitor.Answers()
	if err := r.reload("master_timeout: 2s", "master_timeout: 1s"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the answers are in use", func() bool { return r.monitor.Answers() > answers })
	if n := asked() - before; n != 2 { // for its databases and for its save points
		t.Errorf("it was asked %d times for settings", n)
	}
}
