package integration

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// TestToysOnlyWhereTheyAreAskedFor: a configuration that is not where it is
// looked for ends the program. Embedded servers start where a file or -demo says
// so, and then it is said.
func TestToysOnlyWhereTheyAreAskedFor(t *testing.T) {
	nowhere := t.TempDir()
	for _, row := range []struct {
		dir  string
		args []string
		code int
		says string
	}{
		{nowhere, nil, 2, "config.yaml does not exist"},
		{nowhere, nil, 2, "-demo"},
		{nowhere, []string{"-new"}, 2, "config.yaml does not exist"},
		{nowhere, []string{"-check"}, 2, "config.yaml does not exist"},
		{nowhere, []string{"-reload"}, 2, "config.yaml does not exist"},
		{nowhere, []string{"-demo", "-config", "config.yaml"}, 2, "-demo reads no configuration"},
		{nowhere, []string{"-demo", "-check"}, 0, "demo: the masters are embedded"},
		{"..", []string{"-check"}, 0, "demo: the masters are embedded"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		program := exec.CommandContext(ctx, proxyBinary, row.args...)
		program.Dir = row.dir
		out, _ := program.CombinedOutput()
		cancel()
		if code := program.ProcessState.ExitCode(); code != row.code || !strings.Contains(string(out), row.says) {
			t.Errorf("%v in %s ended with %d, not %d and %q:\n%s", row.args, row.dir, code, row.code, row.says, out)
		}
	}
}
