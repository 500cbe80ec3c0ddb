package operation

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// TestEmbeddedServersOnlyOnRequest: a missing configuration file ends the program. Embedded
// servers start only if a file or -demo says so, and then the program says that they are
// embedded.
func TestEmbeddedServersOnlyOnRequest(t *testing.T) {
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
		{nowhere, []string{"-demo", "-check", "-json"}, 0, `"fine": true`},
		{nowhere, []string{"-help"}, 0, "redlock-proxy -demo "},
		{nowhere, []string{"-move-keys"}, 2, "-move-keys needs -reload"},
		{nowhere, []string{"-json"}, 2, "-all and -json need -check"},
		{"..", []string{"-check"}, 0, "demo: the masters are embedded"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		program := exec.CommandContext(ctx, rig.ProxyBinary, row.args...)
		program.Dir = row.dir
		out, _ := program.CombinedOutput()
		cancel()
		if code := program.ProcessState.ExitCode(); code != row.code || !strings.Contains(string(out), row.says) {
			t.Errorf("%v in %s ended with %d, not %d and %q:\n%s", row.args, row.dir, code, row.code, row.says, out)
		}
	}
}
