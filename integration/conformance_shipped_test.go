package integration

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shippedLibraries are those that the toys of the shipped config.yaml must
// hold locks for: between them they keep strings, hashes, lists, sets and
// sorted sets, run scripts on several keys, publish and block.
var shippedLibraries = []string{
	"Redisson 3.17.7 RLock", "Redisson 3.17.7 fair lock", "Redisson 3.17.7 write lock",
	"Redisson 4.7.0 RLock", "Redisson 4.7.0 fair lock", "Redisson 4.7.0 write lock",
	"Spring RedisLockRegistry 7.1.0 spin lock", "Spring RedisLockRegistry 7.1.0 pub-sub lock",
	"python-redis-lock 4.0.1", "pottery 3.0.1",
	"redis-semaphore 5.8.0 Mutex over ioredis 6",
}

// TestShippedConfiguration: what one gets by trying the program out as it is
// delivered holds the locks of libraries that keep them in more than strings.
func TestShippedConfiguration(t *testing.T) {
	var libraries []conformanceLibrary
	for _, name := range shippedLibraries {
		i := slices.IndexFunc(conformanceLibraries, func(l conformanceLibrary) bool { return l.name() == name })
		if i < 0 {
			t.Fatalf("there is no library %q", name)
		}
		libraries = append(libraries, conformanceLibraries[i])
	}
	for i, library := range libraries {
		t.Run(strings.ReplaceAll(library.name(), "/", "-"), func(t *testing.T) {
			proxy := startShipped(t, cmp.Or(library.rule, "lock:*"))
			conform(t, clusterOfToys(t, proxy), proxy, library, fmt.Sprintf("lock:shipped-%d", i))
		})
	}
}

// startShipped starts the program with the config.yaml of the repository, but
// for where it listens, the lock rule, and patience for a slow machine.
func startShipped(t *testing.T, rule string) *proxyProcess {
	t.Helper()
	shipped, err := os.ReadFile("../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	p := &proxyProcess{port: freePort(t), admin: freePort(t), binary: proxyBinary, flags: []string{"-config", file}}
	text := string(shipped)
	for _, setting := range []struct{ line, instead string }{
		{`(?m)^listen: .*`, fmt.Sprintf("listen: 127.0.0.1:%d", p.port)},
		{`(?m)^admin: .*`, fmt.Sprintf("admin: 127.0.0.1:%d", p.admin)},
		{`(?m)^  - match: "lock:\*"`, fmt.Sprintf("  - match: %q", rule)},
		{`(?m)^master_timeout: .*`, "master_timeout: 2s"},
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
	p.start(t)
	t.Cleanup(func() { p.finish(t) })
	waitFor(t, "the proxy is ready", p.ready)
	return p
}

// clusterOfToys stands for embedded servers, at which one can only look
// through the proxy.
func clusterOfToys(t *testing.T, proxy *proxyProcess) *cluster {
	t.Helper()
	through := func(name string) *redisServer {
		return &redisServer{name: name + ", seen through the proxy", port: proxy.port, proc: proxy.proc, direct: proxy.client(t)}
	}
	c := &cluster{upstream: through("the upstream"), proxy: proxy, toys: true}
	for range masterCount {
		c.masters = append(c.masters, through("a master"))
	}
	return c
}
