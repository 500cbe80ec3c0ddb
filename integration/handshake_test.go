package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestHandshakes runs every client, unmodified, on four proxies over the same
// masters: one as it comes, one that wants a password, where the client also
// chooses a database and a name, and, for clients that only lock, one whose
// upstream is down and one that lets them do nothing else.
func TestHandshakes(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	stage := &handshakeStage{
		cluster: c,
		plain:   startRedis(t, "plain"),
		locked:  c.addProxy(t, proxyOptions{more: fmt.Sprintf("auth: {password: %s}\n", handshakePassword)}),
		locker:  c.addProxy(t, proxyOptions{more: fmt.Sprintf("auth: {password: %s, may: locks}\n", handshakePassword)}),
		orphan:  c.addProxy(t, proxyOptions{upstream: fmt.Sprintf("redis://127.0.0.1:%d", freePort(t))}),
	}
	t.Run("clients", func(t *testing.T) {
		for i, client := range handshakeClients {
			t.Run(client.name(), func(t *testing.T) {
				t.Parallel()
				stage.run(t, client, fmt.Sprintf("client-%d", i))
			})
		}
	})
}

// handshakeStage is where clients are tried.
type handshakeStage struct {
	*cluster
	plain  *redisServer  // what the proxy is held against when something fails
	locked *proxyProcess // wants a password
	locker *proxyProcess // wants a password, and lets who has it only lock
	orphan *proxyProcess // has no upstream
}

// handshakeTrial is one run of one client's program.
type handshakeTrial struct {
	client   handshakeClient
	key      string // makes its keys its own
	port     int
	mode     string // "all", or "locks" for these alone
	password string
	db       int
}

const (
	handshakePassword = "correct-horse"
	handshakeDatabase = 3
)

func (s *handshakeStage) run(t *testing.T, client handshakeClient, key string) {
	program := client.program(t)
	all := handshakeTrial{client: client, key: key, port: s.proxy.port, mode: "all"}
	said := s.mustPass(t, program, all)
	login := handshakeTrial{client: client, key: key + "-login", port: s.locked.port, mode: "all",
		password: handshakePassword, db: handshakeDatabase}
	s.mustPass(t, program, login)
	locks := handshakeTrial{client: client, key: key + "-alone", port: s.orphan.port, mode: "locks"}
	s.mustPass(t, program, locks)
	only := handshakeTrial{client: client, key: key + "-only", port: s.locker.port, mode: "locks", password: handshakePassword}
	s.mustPass(t, program, only)
	if t.Failed() {
		return
	}
	t.Logf("%s: everything; with password, database and name; locks without upstream, and with no right to it", strings.TrimSpace(said+" "+client.variant))
}

// mustPass returns what the client says it is. What went wrong is shown byte
// for byte, beside what plain Redis makes of the same client.
func (s *handshakeStage) mustPass(t *testing.T, program clientProgram, trial handshakeTrial) string {
	t.Helper()
	said, err := s.pass(t, program, trial)
	if err != nil {
		t.Errorf("%v\n%s", err, s.explain(t, program, trial))
	}
	return said
}

func (s *handshakeStage) pass(t *testing.T, program clientProgram, trial handshakeTrial) (said string, err error) {
	lines, err := trial.start(t, program)
	if err != nil {
		return "", err
	}
	said, found := strings.CutPrefix(lines[0], "client ")
	wanted := strings.TrimSpace(trial.client.library + " " + trial.client.version)
	if !found || said != wanted && !strings.HasPrefix(said, wanted+" ") {
		return "", fmt.Errorf("the client is %q, not %q", said, wanted)
	}
	if want := trial.wanted(); !slices.Equal(lines[1:], want) {
		return said, fmt.Errorf("%s, %s: the steps are\n%q, not\n%q", trial.client.name(), trial.mode, lines[1:], want)
	}
	return said, s.inspect(t.Context(), trial)
}

func (h handshakeTrial) wanted() []string {
	if h.mode == "all" {
		return slices.Concat(everyOrdinaryStep, everyLockStep, h.client.lockExtras)
	}
	return slices.Concat(everyLockStep, h.client.lockExtras)
}

// start runs the program to its end and returns its lines, at least one.
func (h handshakeTrial) start(t *testing.T, program clientProgram) ([]string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	words := append(slices.Clone(program.words),
		fmt.Sprint(h.port), h.mode, h.key, h.client.protocol, h.password, fmt.Sprint(h.db))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), program.env...)
	cmd.WaitDelay = time.Second
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w after %q\n%.4000s", h.client.name(), h.mode, err, lines, &complaints)
	}
	return lines, nil
}

// inspect looks at the servers: everything must be where it belongs.
func (s *handshakeStage) inspect(ctx context.Context, trial handshakeTrial) error {
	kept := "lock:" + trial.key + ":kept"
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		holders := 0
		for _, master := range s.masters {
			if value, err := master.lookUp(ctx, trial.db, kept); err != nil {
				return err
			} else if value == keptToken {
				holders++
			}
		}
		if holders >= quorum {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d masters hold %s", holders, kept)
		}
	}
	wanted := map[string]string{kept: ""}
	if trial.mode == "all" {
		wanted["h:"+trial.key+":value"] = "one"
		wanted["h:"+trial.key+":count"] = "13"
	}
	for key, want := range wanted {
		if value, err := s.upstream.lookUp(ctx, trial.db, key); err != nil || value != want {
			return fmt.Errorf("the upstream has %q in %s, want %q (%v)", value, key, want, err)
		}
	}
	return nil
}

// lookUp returns what a key holds in a database, "" if there is none.
func (r *redisServer) lookUp(ctx context.Context, db int, key string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: r.addr(), DB: db, MaxRetries: -1, DisableIdentity: true, Protocol: 2})
	defer client.Close()
	value, err := client.Get(ctx, key).Result()
	if err == redis.Nil {
		return "", nil
	}
	return value, err
}
