package proxy

import (
	"errors"
	"os"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/inspect"
)

const refusalBase = `listen: 127.0.0.1:6380
admin: 127.0.0.1:9380
upstream: redis://u:hunter1@up:1
masters:
  - redis://a:1
  - redis://:hunter1@b:1
  - redis://c:1
`

// loadText reads a configuration from f.yaml in the test's working directory.
func loadText(t *testing.T, text string) *config.Config {
	t.Helper()
	if err := os.WriteFile("f.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load("f.yaml", config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A server that is new must answer; one that is entered otherwise than before
// must not refuse that, but may be away.
func TestReloadAsksTheServers(t *testing.T) {
	t.Chdir(t.TempDir())
	away, wrong := errors.New("connection refused"), serverError("WRONGPASS invalid")
	for _, row := range []struct {
		to     [2]string // from, to
		second error     // of master 2
		up     error
		want   string
	}{
		{[2]string{}, away, away, ""},
		{[2]string{"hunter1@b:1", "hunter2@b:1"}, away, nil, ""},
		{[2]string{"hunter1@b:1", "hunter2@b:1"}, wrong, nil, "f.yaml:6: masters[1]: b:1 does not accept the new credentials: WRONGPASS invalid"},
		{[2]string{"hunter1@b:1", "hunter2@d:1"}, away, nil, "f.yaml:6: masters[1]: b:1 cannot be used: connection refused"},
		{[2]string{"u:hunter1", "u:hunter2"}, nil, wrong, "f.yaml:3: upstream: up:1 does not accept the new credentials: WRONGPASS invalid"},
		{[2]string{"u:hunter1", "u:hunter2"}, nil, away, ""},
		{[2]string{"@up:1", "@other:1"}, nil, away, "f.yaml:3: upstream: up:1 cannot be used: connection refused"},
	} {
		after := strings.Replace(refusalBase, row.to[0], row.to[1], 1)
		old, next := loadText(t, refusalBase), loadText(t, after)
		plan, err := config.PlanReload(old, next)
		if err != nil {
			t.Fatal(err)
		}
		masters := []inspect.Facts{{Name: "a:1"}, {Name: "b:1", Err: row.second}, {Name: "c:1"}}
		got := ""
		if err := refusedBy(plan, inspect.Answers{Config: next, Upstream: &inspect.Facts{Name: "up:1", Err: row.up}, Masters: masters}); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%v: %q", row.to, got)
		}
	}
}

// serverError is an error that a server answered.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}
