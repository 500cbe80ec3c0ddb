package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Users whose passwords come from a file, from the environment and from the
// configuration do what they may, with an unmodified client; a reload takes
// rights away and ends connections of who is no more.
func TestUsers(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "locker")
	if err := os.WriteFile(secret, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("READER_PASSWORD", "from the environment")
	users := `auth:
  password: plain
  users:
    - {name: locker, password_file: ` + secret + `, may: locks}
    - {name: reader, password_env: READER_PASSWORD, may: upstream}
`
	c := startServers(t)
	options := proxyOptions{more: users, upstream: c.upstream.url()}
	for _, master := range c.masters {
		options.masters = append(options.masters, master.url())
	}
	c.proxy = c.addProxy(t, options)
	cli := func(user, password string, command ...string) string {
		args := []string{"-h", "127.0.0.1", "-p", fmt.Sprint(c.proxy.port), "--user", user, "--pass", password, "--no-auth-warning"}
		return redisCLI(append(args, command...)...)
	}
	for _, row := range []struct {
		user, password string
		command        []string
		want           string
	}{
		{"locker", "from a file", []string{"SET", "lock:a", "token", "NX", "PX", "60000"}, "OK"},
		{"locker", "from a file", []string{"GET", "app"}, "NOPERM this user has no permissions to access one of the keys used as arguments"},
		{"locker", "from a file", []string{"FLUSHALL"}, "NOPERM this user has no permissions to run the 'flushall' command"},
		{"reader", "from the environment", []string{"SET", "app", "1"}, "OK"},
		{"reader", "from the environment", []string{"DEL", "lock:a"}, "NOPERM this user has no permissions to access one of the keys used as arguments"},
		{"default", "plain", []string{"GET", "lock:a"}, "token"},
		{"default", "plain", []string{"GET", "app"}, "1"},
		{"reader", "plain", []string{"ACL", "WHOAMI"}, "NOAUTH Authentication required."},
	} {
		if got := cli(row.user, row.password, row.command...); !strings.Contains(got, row.want) {
			t.Errorf("%s: %s: got %q, want %q", row.user, row.command, got, row.want)
		}
	}

	locker := dialWire(t, c.proxy.addr(), 2)
	waits := dialWire(t, c.proxy.addr(), 2)
	for _, w := range []*wire{locker, waits} {
		if reply, err := w.do("AUTH", "locker", "from a file"); string(reply) != "+OK\r\n" {
			t.Fatalf("AUTH: %q %v", reply, err)
		}
	}
	if _, err := waits.do("SUBSCRIBE", "lock-signal:a"); err != nil {
		t.Fatal(err)
	}
	options.more = strings.Replace(users, "may: locks", "may: upstream", 1)
	c.proxy.reload(t, options, "applied")
	if reply, err := waits.read(); err == nil {
		t.Errorf("a subscriber who may not listen any more read %q", reply)
	}
	if reply, err := locker.do("GET", "lock:a"); !strings.HasPrefix(string(reply), "-NOPERM") {
		t.Errorf("after the right was taken away: %q %v", reply, err)
	}
	options.more = "auth: {password: plain}\n"
	c.proxy.reload(t, options, "applied")
	if reply, err := locker.read(); err == nil {
		t.Errorf("a removed user's connection read %q", reply)
	}
	if log := c.proxy.proc.Log.String(); !strings.Contains(log, "locker may use locks -> upstream") || !strings.Contains(log, "removed locker, removed reader") {
		t.Error("the log does not say how the users changed")
	}
	for _, text := range []string{"from a file", "from the environment", "password=", "plain"} {
		if strings.Contains(c.proxy.proc.Log.String(), text) {
			t.Errorf("the log shows the password %q", text)
		}
	}
}

// With auth: upstream existing clients change an address and nothing else: the
// upstream's users and ACLs hold, the proxy's file has none of them, and who was
// accepted goes on locking while the upstream is away.
func TestUsersOfTheUpstream(t *testing.T) {
	c := startServers(t)
	upstream := newRedis(t, "upstream with users", "--requirepass", "admins",
		"--user", "billing", "on", ">bill-pw", "~bill:*", "&*", "+@all", "-@dangerous",
		"--user", "proxy", "on", ">proxy-pw", "~*", "&*", "+@all")
	upstream.direct.Close()
	upstream.direct = redis.NewClient(&redis.Options{Addr: upstream.addr(), Password: "admins", MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})
	upstream.start(t)
	options := proxyOptions{
		upstream: fmt.Sprintf("redis://proxy:proxy-pw@127.0.0.1:%d", upstream.port),
		more:     "auth: upstream\n", rules: []string{"lock:*"},
	}
	c.proxy = c.addProxy(t, options)
	cli := func(login []string, command ...string) string {
		args := append([]string{"-h", "127.0.0.1", "-p", fmt.Sprint(c.proxy.port), "--no-auth-warning"}, login...)
		return redisCLI(append(args, command...)...)
	}
	var nobody []string
	admin, billing := []string{"-a", "admins"}, []string{"--user", "billing", "--pass", "bill-pw"}
	wrong, hello := []string{"--user", "billing", "--pass", "not-bills"}, []string{"-3", "--user", "billing", "--pass", "bill-pw"}
	expect := func(login []string, want string, command ...string) {
		t.Helper()
		if got := cli(login, command...); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
	expect(nobody, "NOAUTH Authentication required.", "SET", "lock:a", "x", "NX", "PX", "60000")
	expect(nobody, "NOAUTH Authentication required.", "GET", "app")
	expect(admin, "default", "ACL", "WHOAMI")
	expect(admin, "OK", "SET", "app", "1")
	expect(billing, "billing", "ACL", "WHOAMI")
	expect(hello, "billing", "ACL", "WHOAMI")
	expect(billing, "OK", "SET", "bill:1", "1")
	expect(billing, "NOPERM", "GET", "app")
	expect(billing, "NOPERM", "FLUSHALL")
	expect(wrong, "WRONGPASS invalid username-password pair or user is disabled.", "PING")
	expect(billing, "OK", "SET", "lock:a", "token", "NX", "PX", "60000")
	expect(admin, "token", "GET", "lock:a")
	c.waitHeld(t, "lock:a", "token")

	upstream.crash()
	expect(billing, "1", "DEL", "lock:a")
	expect(hello, "OK", "SET", "lock:b", "token", "NX", "PX", "60000")
	expect(billing, "NOUPSTREAM", "GET", "bill:1")
	expect(wrong, "NOUPSTREAM", "GET", "lock:b")
	expect(nobody, "NOUPSTREAM", "GET", "lock:b")

	upstream.config[5] = ">changed"
	upstream.start(t)
	waitFor(t, "the upstream serves", func() error {
		if got := cli([]string{"--user", "billing", "--pass", "changed"}, "GET", "lock:b"); got != "token" {
			return fmt.Errorf("GET answers %q", got)
		}
		return nil
	})
	expect(billing, "WRONGPASS", "GET", "lock:b")
	for _, text := range []string{"admins", "bill-pw", "proxy-pw", "not-bills"} {
		if strings.Contains(c.proxy.proc.Log.String(), text) {
			t.Errorf("the log shows the password %q", text)
		}
	}
}

// redisCLI runs one redis-cli command and returns what it prints, its errors
// included.
func redisCLI(args ...string) string {
	out, _ := exec.Command("redis-cli", args...).CombinedOutput()
	return strings.TrimSpace(string(out))
}
