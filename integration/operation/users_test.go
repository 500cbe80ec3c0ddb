package operation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// Users have passwords from a file, from the environment and from the configuration. With
// an unmodified client they may do what their rights say. A reload removes rights and ends
// the connections of users that no longer exist.
func TestUsers(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "locker")
	if err := os.WriteFile(secret, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	users := `auth:
  password: plain
  users:
    - {name: locker, password_file: ` + secret + `, may: locks}
    - {name: reader, password_env: READER_PASSWORD, may: upstream}
`
	c := rig.StartServers(t)
	options := rig.Options{More: users, Upstream: c.Upstream.URL()}
	for _, master := range c.Masters {
		options.Masters = append(options.Masters, master.URL())
	}
	c.Proxy = c.AddProxy(t, options)
	cli := func(user, password string, command ...string) string {
		args := []string{"-h", "127.0.0.1", "-p", fmt.Sprint(c.Proxy.Port), "--user", user, "--pass", password, "--no-auth-warning"}
		return rig.RedisCLI(append(args, command...)...)
	}
	for _, row := range []struct {
		user, password string
		command        []string
		want           string
	}{
		{"locker", "from a file", []string{"SET", "lock:a", "token", "NX", "PX", "60000"}, "OK"},
		{"locker", "from a file", []string{"GET", "app"}, "NOPERM this user has no permissions to access one of the keys used as arguments"},
		{"locker", "from a file", []string{"FLUSHALL"}, "NOPERM this user has no permissions to run the 'flushall' command"},
		{"reader", passwordOfTheReader, []string{"SET", "app", "1"}, "OK"},
		{"reader", passwordOfTheReader, []string{"DEL", "lock:a"}, "NOPERM this user has no permissions to access one of the keys used as arguments"},
		{"default", "plain", []string{"GET", "lock:a"}, "token"},
		{"default", "plain", []string{"GET", "app"}, "1"},
		{"reader", "plain", []string{"ACL", "WHOAMI"}, "NOAUTH Authentication required."},
	} {
		if got := cli(row.user, row.password, row.command...); !strings.Contains(got, row.want) {
			t.Errorf("%s: %s: got %q, want %q", row.user, row.command, got, row.want)
		}
	}

	locker := rig.Dial(t, c.Proxy.Addr(), 2)
	waits := rig.Dial(t, c.Proxy.Addr(), 2)
	for _, w := range []*rig.Wire{locker, waits} {
		if reply, err := w.Do("AUTH", "locker", "from a file"); string(reply) != "+OK\r\n" {
			t.Fatalf("AUTH: %q %v", reply, err)
		}
	}
	if _, err := waits.Do("SUBSCRIBE", "lock-signal:a"); err != nil {
		t.Fatal(err)
	}
	options.More = strings.Replace(users, "may: locks", "may: upstream", 1)
	c.Proxy.Reload(t, options, "applied")
	if rest := waits.ExpectEnd(t); len(rest) > 0 {
		t.Errorf("a subscriber who may not listen any more read %q", rest)
	}
	if reply, err := locker.Do("GET", "lock:a"); !strings.HasPrefix(string(reply), "-NOPERM") {
		t.Errorf("after the right was taken away: %q %v", reply, err)
	}
	options.More = "auth: {password: plain}\n"
	c.Proxy.Reload(t, options, "applied")
	if rest := locker.ExpectEnd(t); len(rest) > 0 {
		t.Errorf("a removed user's connection read %q", rest)
	}
	if log := c.Proxy.Proc.Log.String(); !strings.Contains(log, "locker may use locks -> upstream") || !strings.Contains(log, "removed locker, removed reader") {
		t.Error("the log does not say how the users changed")
	}
	for _, text := range []string{"from a file", passwordOfTheReader, "password=", "plain"} {
		if strings.Contains(c.Proxy.Proc.Log.String(), text) {
			t.Errorf("the log shows the password %q", text)
		}
	}
}

// With auth: upstream, existing clients change only an address. The upstream's users and
// ACLs apply, and the proxy's file has none of them. A client that was accepted goes on
// locking while the upstream is away.
func TestUsersOfTheUpstream(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	upstream := rig.NewServer(t, "upstream with users", "--requirepass", "admins",
		"--user", "billing", "on", ">bill-pw", "~bill:*", "&*", "+@all", "-@dangerous",
		"--user", "proxy", "on", ">proxy-pw", "~*", "&*", "+@all")
	upstream.Direct.Close()
	upstream.Direct = redis.NewClient(&redis.Options{Addr: upstream.Addr(), Password: "admins", MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})
	upstream.Start(t)
	options := rig.Options{
		Upstream: fmt.Sprintf("redis://proxy:proxy-pw@127.0.0.1:%d", upstream.Port),
		More:     "auth: upstream\n", Rules: []string{"lock:*"},
	}
	c.Proxy = c.AddProxy(t, options)
	cli := func(login []string, command ...string) string {
		args := append([]string{"-h", "127.0.0.1", "-p", fmt.Sprint(c.Proxy.Port), "--no-auth-warning"}, login...)
		return rig.RedisCLI(append(args, command...)...)
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
	c.WaitHeld(t, "lock:a", "token")

	upstream.Kill()
	expect(billing, "1", "DEL", "lock:a")
	expect(hello, "OK", "SET", "lock:b", "token", "NX", "PX", "60000")
	expect(billing, "NOUPSTREAM", "GET", "bill:1")
	expect(wrong, "NOUPSTREAM", "GET", "lock:b")
	expect(nobody, "NOUPSTREAM", "GET", "lock:b")

	upstream.Config[5] = ">changed"
	upstream.Start(t)
	rig.WaitFor(t, "the upstream serves", func() error {
		if got := cli([]string{"--user", "billing", "--pass", "changed"}, "GET", "lock:b"); got != "token" {
			return fmt.Errorf("GET answers %q", got)
		}
		return nil
	})
	expect(billing, "WRONGPASS", "GET", "lock:b")
	for _, text := range []string{"admins", "bill-pw", "proxy-pw", "not-bills"} {
		if strings.Contains(c.Proxy.Proc.Log.String(), text) {
			t.Errorf("the log shows the password %q", text)
		}
	}
}
