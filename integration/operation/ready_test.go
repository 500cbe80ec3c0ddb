package operation

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

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
