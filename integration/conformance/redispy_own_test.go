package conformance

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// The tests of redis-py itself about CLIENT. With the users of the upstream all of them do
// through the proxy what they do on a plain Redis of this version.
const redisPyOwnTests = `test_client_getname test_client_getredir test_client_id test_client_info
test_client_kill test_client_kill_filter_by_addr test_client_kill_filter_by_id test_client_kill_filter_by_laddr
test_client_kill_filter_by_maxage test_client_kill_filter_by_user test_client_kill_filter_invalid_params
test_client_list test_client_list_after_client_setname test_client_list_client_id test_client_list_replica
test_client_list_types_not_replica test_client_no_evict test_client_no_touch test_client_pause test_client_pause_all
test_client_reply test_client_setinfo test_client_setname test_client_tracking test_client_trackinginfo
test_client_unblock test_client_unpause`

// redisPyOwnFailures are those that cannot pass if the proxy has users of its own, with a part
// of the failure's message.
var redisPyOwnFailures = map[string]string{
	// It makes a user by ACL SETUSER, which the proxy does not know when it logs in as that user.
	"test_client_kill_filter_by_user": "AuthenticationError: invalid username-password pair",
}

// TestRedisPyOwnTests runs them, unmodified, from the source package.
func TestRedisPyOwnTests(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Python, rig.Pip)
	requirements := absolute(t, "clients/python/requirements/redis-5.2.1-own-tests.txt")
	dir := installed(t, "redis-py's own tests", []string{requirements}, func(dir string) error {
		if err := fetch(t, dir, "python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", dir, "--requirement", requirements); err != nil {
			return err
		}
		if err := fetch(t, dir, "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "redis", "redis==5.2.1"); err != nil {
			return err
		}
		return install(dir, "tar", "xzf", "redis-5.2.1.tar.gz")
	})
	plain := redisPyOwn(t, dir, rig.StartServer(t, "plain").Port)
	c := rig.StartServers(t)
	for name, row := range map[string]struct {
		more  string
		fails map[string]string
	}{
		"its own users":        {"", redisPyOwnFailures},
		"the upstream's users": {"auth: upstream\n", nil},
	} {
		proxy := c.AddProxy(t, rig.Options{More: row.more})
		through := redisPyOwn(t, dir, proxy.Port)
		for _, test := range strings.Fields(redisPyOwnTests) {
			want, as := plain[test], through[test] == plain[test]
			if text := row.fails[test]; text != "" {
				want, as = failed+text, strings.HasPrefix(through[test], failed) && strings.Contains(through[test], text)
			}
			if plain[test] == "" || strings.HasPrefix(plain[test], failed) || !as {
				t.Errorf("%s: %s: it %s, not %s; on a plain Redis it %s", name, test, through[test], want, plain[test])
			}
		}
		if names := slices.Sorted(maps.Keys(through)); !slices.Equal(names, strings.Fields(redisPyOwnTests)) {
			t.Errorf("%s: these tests ran: %s", name, names)
		}
	}
}

// failed begins the result of a test that failed. The failure's message follows.
const failed = "failed: "

// redisPyOwn returns by name whether each test passed, failed or was skipped.
func redisPyOwn(t *testing.T, dir string, port int) map[string]string {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.xml")
	run := exec.CommandContext(t.Context(), "python3", "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-W", "ignore", "tests/test_commands.py",
		"-k", "test_client_", "--redis-url", fmt.Sprintf("redis://localhost:%d/0", port), "--junitxml", report)
	run.Dir = filepath.Join(dir, "redis-5.2.1")
	run.Env = append(os.Environ(), "PYTHONPATH="+dir)
	out, err := run.CombinedOutput() // it fails if a test does
	text, missing := os.ReadFile(report)
	if missing != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type failure struct {
		Message string `xml:"message,attr"`
	}
	var cases struct {
		Cases []struct {
			Name    string     `xml:"name,attr"`
			Failed  []failure  `xml:"failure"`
			Broken  []failure  `xml:"error"`
			Skipped []struct{} `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	results := map[string]string{}
	for _, c := range cases.Cases {
		switch wrong := append(c.Failed, c.Broken...); {
		case len(wrong) > 0:
			results[c.Name] = failed + wrong[0].Message
			t.Logf("port %d: %s %s", port, c.Name, results[c.Name])
		case len(c.Skipped) > 0:
			results[c.Name] = "skipped"
		default:
			results[c.Name] = "passed"
		}
	}
	return results
}
