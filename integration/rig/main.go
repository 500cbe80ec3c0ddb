package rig

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/integration/layer"
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
	PHP            = Program{name: "php", debian: "php-cli"}
	Phpredis       = Program{name: "phpredis", debian: "php-redis", look: []string{"php", "-r", "exit(extension_loaded('redis') ? 0 : 1);"}}
	Predis         = Program{name: "Predis", debian: "php-predis", look: []string{"php", "-r", "require 'Predis/autoload.php';"}}
	Java           = Program{name: "javac", debian: "default-jdk-headless"}
	Maven          = Program{name: "mvn", debian: "maven"}
	Python         = Program{name: "python3", debian: "python3"}
	Node           = Program{name: "node", debian: "nodejs"}
	NPM            = Program{name: "npm", debian: "npm"}
	Ruby           = Program{name: "ruby", debian: "ruby"}
	RubyRedis      = Program{name: "redis-rb", debian: "ruby-redis", look: []string{"ruby", "-e", "require 'redis'"}}
	Compiler       = Program{name: "g++", debian: "g++"}
	Chromium       = Program{name: "chromium", debian: "chromium"}
	Cargo          = Program{name: "cargo", debian: "cargo, in Debian 12 too old: https://rustup.rs"}
)

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

// A Room is the layer of a package's tests and the programs that they need.
type Room struct {
	In    layer.Layer // the first layer in which they run
	Needs []Program
	More  []Program // needed too in the layer all
}

// Main runs the tests of a room and ends the process. The tests run in the folder
// integration and have the proxy's binary. In a layer below the room's own, no test runs.
func (r Room) Main(m *testing.M) {
	os.Exit(r.run(m))
}

func (r Room) run(m *testing.M) int {
	if layer.Chosen() < r.In {
		layer.LeaveOut("all tests of this package", r.In)
		_ = flag.Set("test.run", "^$") // then the go command reports that no test ran
		return m.Run()
	}
	needs := r.Needs
	if layer.Chosen() == layer.All {
		needs = append(needs, r.More...)
	}
	if missing := missingPrograms(needs); len(missing) > 0 {
		fmt.Fprintln(os.Stderr, "FAIL, missing:", strings.Join(missing, ", "))
		return 1
	}
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

func missingPrograms(programs []Program) []string {
	var missing []string
	for _, p := range programs {
		if !p.isThere() {
			missing = append(missing, fmt.Sprintf("%s (Debian package %s)", p.name, p.debian))
		}
	}
	return missing
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
