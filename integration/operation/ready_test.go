package operation

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// shown are all places in which an operator or a machine looks whether locks can be decided.
type shown struct {
	ready                bool
	readyz, status, json string
	metric               string
	voting               int
	check                string
	fine                 bool // -check exited with 0
}

func look(t *testing.T, p *rig.Proxy) (s shown) {
	t.Helper()
	get := func(path string) (string, int) {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", p.Admin, path))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body), answer.StatusCode
	}
	var code int
	s.readyz, code = get("/readyz")
	s.ready = code == http.StatusOK
	s.json, _ = get("/status.json")
	s.status = rig.RedisCLI("-p", fmt.Sprint(p.Port), "REDLOCK", "STATUS")
	s.metric = p.Metric(t, "redlock_ready")
	s.voting = len(regexp.MustCompile(`(?m)^redlock_master_state\{.*state="voting"\} 1$`).FindAllString(p.Metrics(t), -1))
	check, err := exec.Command(p.Binary, "-config", p.Flags[1], "-check").CombinedOutput()
	s.check, s.fine = string(check), err == nil
	return s
}

// TestMastersThatRefuseLocksAreShown has three of five masters refuse what locks need. Nobody may
// call that ready: not /readyz, the metrics, STATUS, /status.json (which the page shows) and -check. All
// say why. When the masters work again, all say so.
func TestMastersThatRefuseLocksAreShown(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	rig.MustAcquire(t, client, "lock:before", "token", rig.LongTTL)
	for _, how := range []struct{ begin, end, why string }{
		{"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "its memory is full (OOM); raise its maxmemory"},
		{"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "it wants replicas (NOREPLICAS); set its min-replicas-to-write to 0"},
		{"ACL SETUSER default -@write", "ACL SETUSER default +@write", "grant it (the server says: NOPERM this user has no permissions to run the 'set' command)"},
	} {
		ask := func(command string) {
			for _, master := range c.Masters[:3] {
				if said := rig.RedisCLI(append([]string{"-p", fmt.Sprint(master.Port)}, strings.Fields(command)...)...); said != "OK" {
					t.Fatalf("%s: %s", command, said)
				}
			}
		}
		ask(how.begin)
		rig.WaitFor(t, how.begin+" is noticed without any lock", func() error {
			if s := look(t, c.Proxy); s.ready {
				return fmt.Errorf("%s", s.readyz)
			}
			return nil
		})
		s := look(t, c.Proxy)
		if s.metric != "0" || s.voting != 2 || s.fine {
			t.Errorf("%s: redlock_ready is %s, %d masters vote, and -check finds all well: %v", how.begin, s.metric, s.voting, s.fine)
		}
		for place, text := range map[string]string{"/readyz": s.readyz, "STATUS": s.status, "-check": s.check} {
			for _, master := range c.Masters[:3] {
				if !strings.Contains(text, master.Addr()) || !strings.Contains(text, how.why) {
					t.Errorf("%s: %s does not say why %s does not vote:\n%s", how.begin, place, master.Addr(), text)
				}
			}
		}
		if !strings.Contains(s.json, `"health":"lost"`) || strings.Count(s.json, `"state":"rejected"`) != 3 {
			t.Errorf("%s: the page shows\n%s", how.begin, s.json)
		}
		if ok, err := rig.Acquire(t.Context(), client, "lock:meanwhile", "token", rig.LongTTL); ok || !rig.NoQuorum(err) {
			t.Errorf("%s: a lock was taken: %v %v", how.begin, ok, err)
		}
		ask(how.end)
		rig.WaitFor(t, how.end+" is noticed", func() error {
			if s := look(t, c.Proxy); !s.ready || s.metric != "1" || s.voting != 5 || !s.fine || !strings.Contains(s.json, `"health":"whole"`) {
				return fmt.Errorf("%s\n%s", s.readyz, s.check)
			}
			return nil
		})
	}
	if ok, err := rig.Acquire(t.Context(), client, "lock:before", "another", rig.LongTTL); ok || err != nil {
		t.Errorf("the masters forgot a lock: %v %v", ok, err)
	}
	rig.MustRelease(t, client, "lock:before", "token")
}

// TestChangesOnAMasterAreNoticed changes settings and rights on a master while a proxy runs. What takes the
// master's vote is its state, soon. Any other right is asked for at a reload.
func TestChangesOnAMasterAreNoticed(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	master := c.Masters[0]
	ask := func(command string) {
		if said := rig.RedisCLI(append([]string{"-p", fmt.Sprint(master.Port)}, strings.Fields(command)...)...); said != "OK" {
			t.Fatalf("%s: %s", command, said)
		}
	}
	hazard := fmt.Sprintf(`redlock_hazards{detail="publish",kind="rights",server=%q}`, master.Addr())
	awaits := func(want string) {
		t.Helper()
		c.Proxy.HangUp(t, "applied")
		rig.WaitFor(t, "the hazard is "+want, func() error {
			if is := c.Proxy.Metric(t, hazard); is != want {
				return fmt.Errorf("it is %q", is)
			}
			return nil
		})
	}
	ask("CONFIG SET maxmemory 100mb")
	ask("CONFIG SET maxmemory-policy allkeys-lru")
	c.Proxy.WaitState(t, master, "rejected")
	if s := look(t, c.Proxy); !strings.Contains(s.readyz, "allkeys-lru") || !strings.Contains(s.check, "allkeys-lru") {
		t.Errorf("/readyz: %s\n-check: %s", s.readyz, s.check)
	}
	ask("ACL SETUSER default -publish")
	awaits("1")
	if strings.Contains(c.Proxy.Metrics(t), `kind="eviction"`) {
		t.Error("a master that does not vote is a hazard, too")
	}
	ask("ACL SETUSER default +publish")
	awaits("")
	ask("CONFIG SET maxmemory-policy noeviction")
	c.Proxy.WaitState(t, master, "quarantined")
}

// TestADeadUpstreamIsShown ends the upstream. Locks go on, so the proxy stays ready, and each place says
// that nothing else works. Many clients that try fill no log. The log says when the upstream is back.
func TestADeadUpstreamIsShown(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	awaits := func(up string) (s shown) {
		t.Helper()
		rig.WaitFor(t, "redlock_upstream_up is "+up, func() error {
			if is := c.Proxy.Metric(t, "redlock_upstream_up"); is != up {
				return fmt.Errorf("it is %s", is)
			}
			return nil
		})
		return look(t, c.Proxy)
	}
	says := func(s shown, want bool) {
		t.Helper()
		problem := "the upstream (" + c.Upstream.Addr() + ") cannot be used"
		for place, text := range map[string]string{"/readyz": s.readyz, "STATUS": s.status, "/status.json": s.json} {
			if strings.Contains(text, problem) != want {
				t.Errorf("%s:\n%s", place, text)
			}
		}
		if strings.Contains(s.json, `"upstream_problem":""`) == want || s.fine == want || !s.ready {
			t.Errorf("ready is %v, -check finds all well: %v, and the page shows\n%s", s.ready, s.fine, s.json)
		}
	}
	says(awaits("1"), false)
	c.Upstream.Kill()
	says(awaits("0"), true)
	begun := time.Now()
	for range 300 {
		wire := rig.Dial(t, c.Proxy.Addr(), 2)
		wire.ExpectReply(t, "-NOUPSTREAM the upstream server of this proxy cannot be reached (deploy/INCIDENTS.md#noupstream)\r\n", "GET", "app")
		wire.Conn.Close()
	}
	log := c.Proxy.Proc.Log.String()
	if n, most := strings.Count(log, "upstream dial failed"), 1+int(time.Since(begun)/time.Second); n < 1 || n > most {
		t.Errorf("300 clients fill %d lines in %d s", n, most)
	}
	rig.MustAcquire(t, client, "lock:meanwhile", "token", rig.LongTTL)
	c.Upstream.Start(t)
	says(awaits("1"), false)
	if log := c.Proxy.Proc.Log.String(); strings.Count(log, `msg="the upstream cannot be used`) != 1 || strings.Count(log, `msg="the upstream can be used again"`) != 1 {
		t.Errorf("the log has\n%s", log)
	}
	c.Masters[4].Kill()
	c.Proxy.WaitState(t, c.Masters[4], "unreachable")
	line := fmt.Sprintf(`msg="lock master unreachable; releases for it are queued (deploy/INCIDENTS.md#unreachable)" master=%s state=unreachable reason="it is not connected: connection refused"`, c.Masters[4].Addr())
	rig.WaitFor(t, "a killed master is logged", func() error {
		if !strings.Contains(c.Proxy.Proc.Log.String(), line) {
			return errors.New("it is not")
		}
		return nil
	})
	if n := len(regexp.MustCompile(`level=(WARN|ERROR).*`+regexp.QuoteMeta(c.Masters[4].Addr())).FindAllString(c.Proxy.Proc.Log.String(), -1)); n != 1 {
		t.Errorf("a killed master is logged in %d lines:\n%s", n, c.Proxy.Proc.Log.String())
	}
}
