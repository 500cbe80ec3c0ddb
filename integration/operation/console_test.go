package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestConsoleInRedisCLI shows each subcommand of REDLOCK as a person sees it in redis-cli, in
// RESP2 and RESP3: one lock is held, one client was refused, one waits, and one master of
// five is dead. testdata has the texts, with words for what differs from run to run.
func TestConsoleInRedisCLI(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{
		Rules: []string{"lock:order:*", "lock:*"}, RuleMore: map[string]string{"lock:*": "default_ttl: 30s"},
		More: "limits: {slow_command: 1us}\n",
	})
	connect := func(name string) *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: c.Proxy.Addr(), ClientName: name, DisableIdentity: true, MaxRetries: -1, ReadTimeout: rig.Patience, PoolSize: 1})
		t.Cleanup(func() { client.Close() })
		return client
	}
	holder, refused := connect("order-service"), connect("order-cron")
	rig.MustAcquire(t, holder, "lock:order:7", "a-token-that-nobody-may-see", rig.LongTTL)
	if ok, err := rig.Acquire(t.Context(), refused, "lock:order:7", "another-token-of-somebody", rig.LongTTL); ok || err != nil {
		t.Fatalf("a held lock: %v %v", ok, err)
	}
	waits := connect("order-report")
	waiting := make(chan error, 1)
	go func() { waiting <- waits.BLPop(t.Context(), 0, "lock:order:queue").Err() }()
	t.Cleanup(func() { <-waiting })
	t.Cleanup(func() { waits.Close() })
	rig.WaitFor(t, "each master that stays has the lock, and nobody owes an answer", func() error {
		shown := rig.RedisCLI("-p", fmt.Sprint(c.Proxy.Port), "-3", "--json", "REDLOCK", "WHY", "lock:order:7")
		return settled(shown, 4)
	})
	c.Masters[4].Kill()
	c.Proxy.WaitState(t, c.Masters[4], "unreachable")
	rig.WaitFor(t, "the absence is known, with the reason that it has in the end", func() error {
		status := rig.RedisCLI("-p", fmt.Sprint(c.Proxy.Port), "REDLOCK", "STATUS")
		why := rig.RedisCLI("-p", fmt.Sprint(c.Proxy.Port), "REDLOCK", "WHY", "lock:order:8")
		if !strings.Contains(status, "connection refused") || !strings.Contains(why, "unreachable since") {
			return fmt.Errorf("%s\n%s", status, why)
		}
		return nil
	})
	rig.WaitFor(t, "the client waits", func() error {
		if shown := rig.RedisCLI("-p", fmt.Sprint(c.Proxy.Port), "REDLOCK", "CLIENTS"); !strings.Contains(shown, "blpop") {
			return fmt.Errorf("%s", shown)
		}
		return nil
	})
	for _, protocol := range []string{"-2", "-3"} {
		var all strings.Builder
		for _, line := range []string{
			"HELP", "STATUS", "MASTERS", "RULES", "CLIENTS", "LOCKS", "LOCKS MATCH *:8 COUNT 5", "WHY lock:order:7", "WHY lock:order:8", "HOT",
			"SLOWLOG LEN", "SLOWLOG GET 1", "TOKEN lock:order:7 a-token-that-nobody-may-see", "TOKEN lock:order:7 wrong",
			"WHY app", "BREAK app", "LOCKS COUNT 0", "LOCKS MATCH", "SLOWLOG GET -2", "SLOWLOG TRIM", "NOSUCH", "WHY", "BREAK lock:order:8", "SLOWLOG RESET",
		} {
			args := append([]string{"-p", fmt.Sprint(c.Proxy.Port), protocol, "--no-raw", "REDLOCK"}, strings.Fields(line)...)
			shown := rig.RedisCLI(args...)
			if line == "CLIENTS" { // the redis-cli before may not have left yet
				rig.WaitFor(t, "four clients", func() error {
					if n := strings.Count(shown, "addr"); n != 4 {
						shown = rig.RedisCLI(args...)
						return fmt.Errorf("%d were shown", n)
					}
					return nil
				})
			}
			if strings.Contains(shown, "nobody-may-see") {
				t.Errorf("%s shows the value of a lock:\n%s", line, shown)
			}
			fmt.Fprintf(&all, "> REDLOCK %s\n%s\n\n", line, withoutChance(c, shown))
		}
		file := fmt.Sprintf("operation/testdata/console-resp%s.txt", strings.Trim(protocol, "-"))
		if datatest.Rewriting() {
			if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		differs(t, file, all.String(), rig.ReadFile(t, file))
	}
}

// settled tells whether the first masters in an answer to WHY hold the key, and none owes an
// answer about it.
func settled(why string, first int) error {
	var answer struct {
		Masters []struct {
			Digest string
			Owes   int `json:"owes-answer"`
		}
	}
	if err := json.Unmarshal([]byte(why), &answer); err != nil || len(answer.Masters) < first {
		return fmt.Errorf("%v: %s", err, why)
	}
	for i, master := range answer.Masters {
		if master.Owes != 0 || i < first && master.Digest == "" {
			return fmt.Errorf("%s", why)
		}
	}
	return nil
}

// These differ from run to run, and so do ports.
var chance = []struct {
	what *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\dZ`), "CLOCK"},
	{regexp.MustCompile(`\d+\.\d s`), "N s"},
	{regexp.MustCompile(`("(?:id|[a-z-]+-ms|idle|age)"(?:\n\s*\d+\)| =>) \(integer\)) \d+`), "$1 N"},
	{regexp.MustCompile(`\(integer\) \d{3,}`), "(integer) N"}, // a moment, a duration, a token
}

// withoutChance puts words in place of what differs from run to run.
func withoutChance(c *rig.Cluster, text string) string {
	for i, master := range c.Masters {
		text = strings.ReplaceAll(text, master.Addr(), fmt.Sprintf("MASTER%d", i+1))
	}
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "CLIENT")
	for _, differs := range chance {
		text = differs.what.ReplaceAllString(text, differs.word)
	}
	return text
}

// differs reports the first line that is not as it was.
func differs(t *testing.T, file, got, want string) {
	t.Helper()
	lines, wanted := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i, line := range lines {
		if i >= len(wanted) || line != wanted[i] {
			t.Errorf("%s, line %d: %q\n%s", file, i+1, line, strings.Join(lines[max(0, i-20):min(len(lines), i+20)], "\n"))
			return
		}
	}
	if len(wanted) > len(lines) {
		t.Errorf("%s: there is no line %q any more", file, wanted[len(lines)])
	}
}
