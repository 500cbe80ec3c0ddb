package integration

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// TestNewLeftInTheStartCommand: a process that says -new again, over masters that
// have had a set for long, ends at once and says why.
func TestNewLeftInTheStartCommand(t *testing.T) {
	var masters []*redisServer
	options := proxyOptions{upstream: "none"}
	for _, name := range []string{"m1", "m2", "m3"} {
		masters = append(masters, startRedis(t, name))
		options.masters = append(options.masters, masters[len(masters)-1].url())
	}
	p := startProxy(t, options)
	p.finish(t)
	for _, m := range masters {
		text, _ := m.value(t, "redlock-proxy:master")
		_, rest, found := strings.Cut(text, " set=")
		_, rest, _ = strings.Cut(rest, " ")
		if err := m.direct.Set(t.Context(), "redlock-proxy:master", "redlock-proxy/2 db=0 set=of-long-ago "+rest, 0).Err(); err != nil || !found {
			t.Fatal(text, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := exec.CommandContext(ctx, proxyBinary, p.flags...)
	out, _ := again.CombinedOutput()
	if code := again.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), "take -new out of the start command") {
		t.Errorf("it ended with %d:\n%s", code, out)
	}
}
