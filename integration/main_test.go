package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// neededPrograms are what the suite cannot do without, and the Debian package
// that brings each.
var neededPrograms = []struct{ program, debian string }{
	{"redis-server", "redis-server"},
	{"redis-cli", "redis-tools"},
	{"valkey-server", "valkey-server, in Debian 12 from its backports"},
	{"faketime", "faketime"},
	{"systemd-analyze", "systemd"},
	{"promtool", "prometheus"},
	{"php", "php-cli"},
	{"javac", "default-jdk-headless"},
	{"mvn", "maven"},
	{"python3", "python3"},
	{"node", "nodejs"},
	{"npm", "npm"},
	{"ruby", "ruby"},
	{"g++", "g++"},
	{"cargo", "cargo, in Debian 12 too old: https://rustup.rs"},
	{"go", "golang"},
}

var (
	scratch     string // removed when the suite ends
	proxyBinary string // built with the race detector
)

func TestMain(m *testing.M) {
	os.Exit(runSuite(m))
}

func runSuite(m *testing.M) int {
	if missing := missingPrograms(); len(missing) > 0 {
		fmt.Fprintln(os.Stderr, "integration: FAIL, missing:", strings.Join(missing, ", "))
		return 1
	}
	var err error
	if scratch, err = os.MkdirTemp("", "redlock-integration-"); err != nil {
		fmt.Fprintln(os.Stderr, "integration: FAIL:", err)
		return 1
	}
	defer os.RemoveAll(scratch)
	proxyBinary = filepath.Join(scratch, "redlock-proxy-race")
	if err := buildProxy(proxyBinary, "-race"); err != nil {
		fmt.Fprintln(os.Stderr, "integration: FAIL:", err)
		return 1
	}
	return m.Run()
}

func missingPrograms() []string {
	var missing []string
	for _, need := range neededPrograms {
		if _, err := exec.LookPath(need.program); err != nil {
			missing = append(missing, fmt.Sprintf("%s (Debian package %s)", need.program, need.debian))
		}
	}
	modules, err := exec.Command("php", "-m").Output()
	if err == nil && !strings.Contains(string(modules), "redis") {
		missing = append(missing, "phpredis (Debian package php-redis)")
	}
	if exec.Command("ruby", "-e", "require 'redis'").Run() != nil {
		missing = append(missing, "redis-rb (Debian package ruby-redis)")
	}
	if exec.Command("php", "-r", "require 'Predis/autoload.php';").Run() != nil {
		missing = append(missing, "Predis (Debian package php-predis)")
	}
	return missing
}

func buildProxy(out string, flags ...string) error {
	args := append([]string{"build", "-o", out}, flags...)
	build := exec.Command("go", append(args, ".")...)
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the proxy: %w\n%s", err, output)
	}
	return nil
}
