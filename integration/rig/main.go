package rig

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"redlock-proxy/integration/layer"

	"github.com/redis/go-redis/v9"
)

// A Program is a program or library that a room needs: how to look for it, and the Debian
// package that has it.
type Program struct {
	name, debian string
	look         []string // a command that succeeds if it is installed; nil: look in the path
}

// These are the programs that rooms need.
var (
	RedisServer    = Program{name: "redis-server", debian: "redis-server"}
	RedisCommand   = Program{name: "redis-cli", debian: "redis-tools"}
	ValkeyServer   = Program{name: "valkey-server", debian: "valkey-server, in Debian 12 from its backports"}
	Faketime       = Program{name: "faketime", debian: "faketime"}
	SystemdAnalyze = Program{name: "systemd-analyze", debian: "systemd"}
	Promtool       = Program{name: "promtool", debian: "prometheus"}
	Dpkg           = Program{name: "dpkg-deb", debian: "dpkg"}
	Lintian        = Program{name: "lintian", debian: "lintian"}
	HAProxy        = Program{name: "haproxy", debian: "haproxy", look: []string{"/usr/sbin/haproxy", "-v"}}
	PHP            = Program{name: "php", debian: "php-cli"}
	Phpredis       = Program{name: "phpredis", debian: "php-redis", look: []string{"php", "-r", "exit(extension_loaded('redis') ? 0 : 1);"}}
	Predis         = phpLibrary("Predis", "php-predis", "Predis")
	SymfonyLock    = phpLibrary("Symfony's Lock", "php-symfony-lock", "Symfony/Component/Lock")
	LaravelCache   = phpLibrary("Laravel's cache", "php-illuminate-cache", "Illuminate/Cache")
	LaravelRedis   = phpLibrary("Laravel's Redis", "php-illuminate-redis", "Illuminate/Redis")
	Laravel        = phpLibrary("Laravel's container", "php-illuminate-container", "Illuminate/Container")
	Java           = Program{name: "javac", debian: "default-jdk-headless"}
	Maven          = Program{name: "mvn", debian: "maven"}
	Python         = Program{name: "python3", debian: "python3"}
	Pip            = Program{name: "pip", debian: "python3-pip", look: []string{"python3", "-m", "pip", "--version"}}
	Node           = Program{name: "node 20", debian: "nodejs, in Debian 12 too old: https://nodejs.org", look: []string{"node", "-e", "process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)"}}
	NPM            = Program{name: "npm", debian: "npm"}
	Ruby           = Program{name: "ruby", debian: "ruby"}
	RubyRedis      = Program{name: "redis-rb", debian: "ruby-redis", look: []string{"ruby", "-e", "require 'redis'"}}
	Compiler       = Program{name: "g++", debian: "g++"}
	Hiredis        = Program{name: "hiredis", debian: "libhiredis-dev", look: []string{"test", "-e", "/usr/include/hiredis/hiredis.h"}}
	Chromium       = Program{name: "chromium", debian: "chromium"}
	Cargo          = Program{name: "cargo 1.88", debian: "cargo, in Debian 12 too old: https://rustup.rs", look: []string{"sh", "-c", `printf '%s\n' "cargo 1.88" "$(cargo --version)" | sort -VC`}}
)

func phpLibrary(name, debian, folder string) Program {
	return Program{name: name, debian: debian, look: []string{"php", "-r", fmt.Sprintf("exit((@include '%s/autoload.php') === false ? 1 : 0);", folder)}}
}

func (p Program) isThere() bool {
	if p.look != nil {
		return exec.Command(p.look[0], p.look[1:]...).Run() == nil
	}
	_, err := exec.LookPath(p.name)
	return err == nil
}

var (
	Scratch     string // removed when the room's tests end
	ProxyBinary string // built with the race detector
)

// A Room is the tier of a package's tests and the programs that all of them need.
type Room struct {
	In    layer.Layer // the first tier in which they run
	Needs []Program
	Waits bool // its tests mostly wait, so three for each processor run at once
}

// Main runs the tests of a room and ends the process. The tests run in the folder
// integration and have the proxy's binary. If the tier is below the room's own or a program
// is missing, only layer.RoomTest runs, which each room has. It calls CheckNeeds.
func (r Room) Main(m *testing.M) {
	os.Exit(r.run(m))
}

// CheckNeeds skips or fails the test if the tests of the room cannot run.
func (r Room) CheckNeeds(t *testing.T) {
	t.Helper()
	layer.Only(t, r.In, "all tests of this room")
	Need(t, r.needs()...)
}

// needs returns what the room needs. The race detector, with which the proxy is built, needs a
// C compiler.
func (r Room) needs() []Program { return append([]Program{Compiler}, r.Needs...) }

// Need skips or fails a test if one of these programs is missing, as layer.Missing says.
func Need(t testing.TB, programs ...Program) {
	t.Helper()
	for _, p := range programs {
		if !p.isThere() {
			layer.Missing(t, fmt.Sprintf("%s (Debian package %s)", p.name, p.debian))
		}
	}
}

func (r Room) run(m *testing.M) int {
	if layer.Chosen() < r.In || slices.ContainsFunc(r.needs(), func(p Program) bool { return !p.isThere() }) {
		_ = flag.Set("test.run", "^"+layer.RoomTest+"$")
		return m.Run()
	}
	if r.Waits { // the flag -parallel overrides this
		_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	}
	redis.SetLogger(Silence{}) // tests see to the errors, and expect broken connections
	err := os.Chdir("..")
	if err == nil {
		Scratch, err = os.MkdirTemp("", "redlock-integration-")
	}
	if err == nil {
		defer os.RemoveAll(Scratch)
		ProxyBinary, err = proxyOfTheseSources()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	return m.Run()
}

// proxyOfTheseSources builds the proxy with the race detector. Each room gets its own
// copy. The original stays in the user's cache: while it is up to date, the go command
// need not link it again for the next room.
func proxyOfTheseSources() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "redlock-proxy-suite")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	original := filepath.Join(cache, "redlock-proxy-race")
	if err := BuildProxy(original, "-race"); err != nil {
		return "", err
	}
	binary, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	own := filepath.Join(Scratch, "redlock-proxy-race")
	return own, os.WriteFile(own, binary, 0o755)
}

// BuildProxy builds the proxy from the working tree.
func BuildProxy(out string, flags ...string) error {
	args := append([]string{"build", "-o", out}, flags...)
	build := exec.Command("go", append(args, ".")...)
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the proxy: %w\n%s", err, output)
	}
	return nil
}
