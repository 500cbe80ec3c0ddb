package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// shippedLibraries must be able to lock on the embedded servers of the shipped config.yaml.
// Together they use strings, hashes, lists, sets and sorted sets, run scripts on several
// keys, publish and block.
var shippedLibraries = []string{
	"Redisson 3.17.7 RLock", "Redisson 3.17.7 fair lock", "Redisson 3.17.7 write lock",
	"Redisson 4.7.0 RLock", "Redisson 4.7.0 fair lock", "Redisson 4.7.0 write lock",
	"Spring RedisLockRegistry 7.1.0 spin lock", "Spring RedisLockRegistry 7.1.0 pub-sub lock",
	"python-redis-lock 4.0.1", "pottery 3.0.1",
	"redis-semaphore 5.8.0 Mutex over ioredis 6",
}

// TestShippedConfiguration: the program as delivered, with its config.yaml, holds the locks
// of libraries that need more than strings.
func TestShippedConfiguration(t *testing.T) {
	layer.Only(t, layer.Long, "needs more libraries")
	for i, name := range shippedLibraries {
		t.Run(name, func(t *testing.T) {
			library := libraryNamed(t, name)
			proxy := startShipped(t, library.rule)
			conform(t, embeddedCluster(t, proxy), proxy, proxy.Port, library.install(t), library, fmt.Sprintf("lock:shipped-%d", i))
		})
	}
}

// startShipped starts the program with the repository's config.yaml. Only the listen
// addresses, the lock rule and the timeouts for a slow machine are different.
func startShipped(t *testing.T, rule string) *rig.Proxy {
	t.Helper()
	shipped, err := os.ReadFile("../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	p := &rig.Proxy{Port: rig.FreePort(t), Admin: rig.FreePort(t), Binary: rig.ProxyBinary, Flags: []string{"-config", file}}
	text := string(shipped)
	for _, setting := range []struct{ line, instead string }{
		{`(?m)^listen: .*`, fmt.Sprintf("listen: 127.0.0.1:%d", p.Port)},
		{`(?m)^admin: .*`, fmt.Sprintf("admin: 127.0.0.1:%d", p.Admin)},
		{`(?m)^  - match: "lock:\*"`, fmt.Sprintf("  - match: %q", rule)},
		{`(?m)^master_timeout: .*`, "master_timeout: 10s"},
	} {
		line := regexp.MustCompile(setting.line)
		if len(line.FindAllString(text, -1)) != 1 {
			t.Fatalf("config.yaml has not one line %s", setting.line)
		}
		text = line.ReplaceAllLiteralString(text, setting.instead)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Start(t)
	t.Cleanup(func() { p.Finish(t) })
	rig.WaitFor(t, "the proxy is ready", p.Ready)
	return p
}

// embeddedCluster represents embedded servers. A test can look at them only through the
// proxy.
func embeddedCluster(t *testing.T, proxy *rig.Proxy) *rig.Cluster {
	t.Helper()
	through := func(name string) *rig.Server {
		return &rig.Server{Name: name + ", seen through the proxy", Port: proxy.Port, Proc: proxy.Proc, Direct: proxy.Client(t)}
	}
	c := &rig.Cluster{Upstream: through("the upstream"), Proxy: proxy, Embedded: true}
	for range rig.MasterCount {
		c.Masters = append(c.Masters, through("a master"))
	}
	return c
}
