package conformance

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

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestHandshakes runs every client, unmodified, on four proxies over the same masters. The
// first has the defaults. The second wants a password; there the client also chooses a
// database and a name. The third has no upstream, and the fourth allows only locks; on these
// two the client only locks.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	stage := &handshakeStage{
		Cluster: c,
		plain:   rig.StartServer(t, "plain"),
		locked:  c.AddProxy(t, rig.Options{More: fmt.Sprintf("auth: {password: %s}\n", handshakePassword)}),
		locker:  c.AddProxy(t, rig.Options{More: fmt.Sprintf("auth: {password: %s, may: locks}\n", handshakePassword)}),
		alone:   c.AddProxy(t, rig.Options{Upstream: "none"}),
	}
	t.Run("clients", func(t *testing.T) {
		for i, client := range ofThisTier(t, handshakeClients) {
			t.Run(client.name(), func(t *testing.T) {
				t.Parallel()
				stage.run(t, client, fmt.Sprintf("client-%d", i))
			})
		}
	})
}

// handshakeStage has the servers and proxies for the trials.
type handshakeStage struct {
	*rig.Cluster
	plain  *rig.Server // for comparison with the proxy after a failure
	locked *rig.Proxy  // wants a password
	locker *rig.Proxy  // wants a password, and allows only locks
	alone  *rig.Proxy  // has no upstream
}

// handshakeTrial is one run of a client's program.
type handshakeTrial struct {
	client   handshakeClient
	key      string // part of the names of its keys, unique to the trial
	port     int
	mode     string // "all", or "locks" for locks only
	password string
	db       int
}

const (
	handshakePassword = "correct-horse"
	handshakeDatabase = 3
)

func (s *handshakeStage) run(t *testing.T, client handshakeClient, key string) {
	program := client.program(t)
	all := handshakeTrial{client: client, key: key, port: s.Proxy.Port, mode: "all"}
	said := s.mustPass(t, program, all)
	login := handshakeTrial{client: client, key: key + "-login", port: s.locked.Port, mode: "all",
		password: handshakePassword, db: handshakeDatabase}
	s.mustPass(t, program, login)
	locks := handshakeTrial{client: client, key: key + "-alone", port: s.alone.Port, mode: "locks"}
	s.mustPass(t, program, locks)
	only := handshakeTrial{client: client, key: key + "-only", port: s.locker.Port, mode: "locks", password: handshakePassword}
	s.mustPass(t, program, only)
	if t.Failed() {
		return
	}
	t.Logf("%s: everything; with password, database and name; locks without upstream, and with no right to it", strings.TrimSpace(said+" "+client.variant))
}

// mustPass returns the name and version that the client reports. After a failure it shows
// the bytes on the wire, next to those of the same client on a plain Redis.
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

// start runs the program to its end and returns its lines. There is at least one.
func (h handshakeTrial) start(t *testing.T, program clientProgram) ([]string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*rig.Patience)
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

// inspect checks that every key is on the right servers.
func (s *handshakeStage) inspect(ctx context.Context, trial handshakeTrial) error {
	kept := "lock:" + trial.key + ":kept"
	for end := time.Now().Add(rig.Patience); ; time.Sleep(5 * time.Millisecond) {
		holders := 0
		for _, master := range s.Masters {
			if value, err := lookUp(ctx, master, trial.db, kept); err != nil {
				return err
			} else if value == keptToken {
				holders++
			}
		}
		if holders >= rig.Quorum {
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
		if value, err := lookUp(ctx, s.Upstream, trial.db, key); err != nil || value != want {
			return fmt.Errorf("the upstream has %q in %s, want %q (%v)", value, key, want, err)
		}
	}
	return nil
}

// lookUp returns the value of a key in a database, "" if the key is missing.
func lookUp(ctx context.Context, r *rig.Server, db int, key string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: r.Addr(), DB: db, MaxRetries: -1, DisableIdentity: true, Protocol: 2})
	defer client.Close()
	value, err := client.Get(ctx, key).Result()
	if err == redis.Nil {
		return "", nil
	}
	return value, err
}
