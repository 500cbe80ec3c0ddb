package shipped

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

const systemdUnit = "../deploy/systemd/redlock-proxy@.service"

// judgeUnit: systemd accepts the unit and rates its sandbox as good.
func judgeUnit(t *testing.T, name, text string) {
	t.Helper()
	here := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(here, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", here).CombinedOutput(); err != nil || strings.Contains(string(out), here) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", here).CombinedOutput(); err != nil {
		t.Errorf("the unit is exposed: %v\n%s", err, out)
	}
}

// TestSystemdUnit: systemd accepts the unit and rates its sandbox as good. The program knows
// the unit's commands. The README's rule about -new holds.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.SystemdAnalyze)
	text := rig.ReadFile(t, systemdUnit)
	text = strings.ReplaceAll(text, "/usr/local/bin/redlock-proxy", rig.ProxyBinary)
	judgeUnit(t, "redlock-proxy@9380.service", text)
	commands := regexp.MustCompile(`(?m)^Exec\w+=(.*)$`).FindAllStringSubmatch(text, -1)
	if len(commands) != 2 {
		t.Errorf("%d commands, want one to start and one to reload: %v", len(commands), commands)
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("upstream: none\nmasters: embedded\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		args := strings.Fields(strings.NewReplacer("/etc/redlock-proxy/config.yaml", config, "%i", "9380").Replace(command[1]))
		// With -check the program only checks. It knows a command with -reload, but does not
		// do both.
		out, err := exec.Command(args[0], append(args[1:], "-check")...).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "-check, -reload and -healthcheck exclude each other") {
			t.Errorf("%s: %v\n%s", command[1], err, out)
		}
		if strings.Contains(command[1], "-new") {
			t.Errorf("%s has -new, and systemd would repeat it after all masters have forgotten everything", command[1])
		}
	}
}
