package rig

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Metrics returns the text of the proxy's /metrics.
func (p *Proxy) Metrics(t testing.TB) string {
	t.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", p.Admin))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Metric returns the value of one series in the proxy's /metrics, or "" if it is missing.
func (p *Proxy) Metric(t testing.TB, series string) string {
	t.Helper()
	for line := range strings.Lines(p.Metrics(t)) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// State returns the state of a master in the proxy's metrics.
func (p *Proxy) State(t testing.TB, master *Server) string {
	t.Helper()
	return p.StateOf(t, master.Addr())
}

// StateOf is State for a master given by its name in the proxy's metrics.
func (p *Proxy) StateOf(t testing.TB, master string) string {
	t.Helper()
	for _, state := range []string{"unreachable", "starting", "quarantined", "voting", "rejected"} {
		if p.Metric(t, fmt.Sprintf("redlock_master_state{master=%q,state=%q}", master, state)) == "1" {
			return state
		}
	}
	return "unknown"
}

func (p *Proxy) WaitState(t testing.TB, master *Server, want string) {
	t.Helper()
	WaitFor(t, master.Name+" is "+want, func() error {
		if state := p.State(t, master); state != want {
			return errors.New("it is " + state)
		}
		return nil
	})
}

// Reload gives the proxy other options and sends SIGHUP. It waits until the proxy has
// applied or refused them, and fails the test if that is not the given result.
func (p *Proxy) Reload(t testing.TB, options Options, result string) {
	t.Helper()
	p.Configure(t, options)
	p.HangUp(t, result)
}

func (p *Proxy) HangUp(t testing.TB, result string) {
	t.Helper()
	counts := func() (applied, refused string) {
		return p.Metric(t, `redlock_config_reloads_total{result="applied"}`), p.Metric(t, `redlock_config_reloads_total{result="refused"}`)
	}
	appliedBefore, refusedBefore := counts()
	p.Proc.Signal(syscall.SIGHUP)
	WaitFor(t, "the reload was judged", func() error {
		applied, refused := counts()
		switch {
		case applied == appliedBefore && refused == refusedBefore:
			return errors.New("nothing has happened")
		case (applied != appliedBefore) != (result == "applied"):
			t.Fatalf("the reload was not %s:\n%s", result, p.Proc.Log.Tail(10))
		}
		return nil
	})
}

// MoveKeys gives the proxy other options whose lock rules may move keys. It returns the
// proxy's report about these keys.
func (p *Proxy) MoveKeys(t testing.TB, options Options) string {
	t.Helper()
	p.Configure(t, options)
	out, err := exec.Command(p.Binary, "-reload", "-move-keys", "-config", p.Flags[1]).CombinedOutput()
	if err != nil {
		t.Fatalf("-reload -move-keys: %v\n%s", err, out)
	}
	return string(out)
}
