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

// States are the states of masters.
var States = []string{"unreachable", "starting", "quarantined", "voting", "rejected"}

// State returns the state of a master in the proxy's metrics.
func (p *Proxy) State(t testing.TB, master *Server) string {
	t.Helper()
	return p.StateOf(t, master.Addr())
}

// StateOf is State for a master given by its name in the proxy's metrics.
func (p *Proxy) StateOf(t testing.TB, master string) string {
	t.Helper()
	shown := p.Metrics(t)
	for _, state := range States {
		if strings.Contains(shown, fmt.Sprintf("\nredlock_master_state{master=%q,state=%q} 1\n", master, state)) {
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

// HangUp sends SIGHUP, and fails the test if the result is another one.
func (p *Proxy) HangUp(t testing.TB, result string) {
	t.Helper()
	if got := p.Signalled(t); got != result {
		t.Fatalf("the reload was %s:\n%s", got, p.Proc.Log.Tail(10))
	}
}

// Signalled sends SIGHUP and returns what the proxy says of its file: "applied" or "refused".
func (p *Proxy) Signalled(t testing.TB) (result string) {
	t.Helper()
	count := func(result string) string {
		return p.Metric(t, fmt.Sprintf("redlock_config_reloads_total{result=%q}", result))
	}
	applied, refused := count("applied"), count("refused")
	p.Proc.Signal(syscall.SIGHUP)
	WaitFor(t, "the reload was judged", func() error {
		switch {
		case count("applied") != applied:
			result = "applied"
		case count("refused") != refused:
			result = "refused"
		default:
			return errors.New("nothing has happened")
		}
		return nil
	})
	return result
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
