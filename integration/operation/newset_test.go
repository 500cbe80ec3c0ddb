package operation

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// TestNewLeftInTheStartCommand: with -new, over masters that have long had a set, the
// program ends at once and says why.
func TestNewLeftInTheStartCommand(t *testing.T) {
	t.Parallel()
	var masters []*rig.Server
	options := rig.Options{Upstream: "none"}
	for _, name := range []string{"m1", "m2", "m3"} {
		masters = append(masters, rig.StartServer(t, name))
		options.Masters = append(options.Masters, masters[len(masters)-1].URL())
	}
	p := rig.StartProxy(t, options)
	p.Finish(t)
	for _, m := range masters {
		text, _ := m.Value(t, "redlock-proxy:master")
		_, rest, found := strings.Cut(text, " set=")
		_, rest, _ = strings.Cut(rest, " ")
		if err := m.Direct.Set(t.Context(), "redlock-proxy:master", "redlock-proxy/2 db=0 set=of-long-ago "+rest, 0).Err(); err != nil || !found {
			t.Fatal(text, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	again := exec.CommandContext(ctx, rig.ProxyBinary, p.Flags...)
	out, _ := again.CombinedOutput()
	if code := again.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), "take -new out of the start command") {
		t.Errorf("it ended with %d:\n%s", code, out)
	}
}
