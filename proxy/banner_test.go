package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/config"
	"redlock-proxy/redlock"
)

// testdata/banner.txt has what a person is shown at the start, and the commands that reach the proxy.
func TestBanner(t *testing.T) {
	datatest.Play(t, "testdata/banner.txt", func(t *testing.T, script *datatest.Script) {
		cfg := config.Demo()
		for event := range script.Events {
			what, text, _ := strings.Cut(event, ": ")
			switch what {
			case "file": // its lines are separated by ;
				file := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "; ", "\n")), 0o600); err != nil {
					t.Fatal(err)
				}
				var err error
				if cfg, err = config.Load(file, config.Flags{}); err != nil {
					t.Fatal(err)
				}
				cfg.Source = "FILE"
			case "command for":
				script.Printf("%s", clientCommand(cfg, text))
			case "banner":
				var newSet time.Time
				text, until, isNew := strings.Cut(text, ", a new set until ")
				if isNew {
					newSet, _ = time.Parse(time.RFC3339, until)
				}
				listen, page, _ := strings.Cut(text, ", page ")
				script.Printf("%s", strings.ReplaceAll(banner(cfg, listen, page, newSet), Version(), "VERSION"))
			default:
				t.Fatal(event)
			}
		}
	})
}

// A person hears of a new set also between its begin and the moment when its quarantines are known.
func TestWhenANewSetIsToldOf(t *testing.T) {
	known, begins := time.Unix(100, 0), time.Unix(200, 0)
	voting := []redlock.MasterStatus{{State: redlock.Voting}}
	for name, row := range map[string]struct {
		status redlock.Status
		blank  bool
		want   time.Time
	}{
		"it has no name yet":           {redlock.Status{Needed: 1}, true, begins},
		"no quarantine is known yet":   {redlock.Status{Needed: 1, Set: "s"}, true, begins},
		"its quarantines are known":    {redlock.Status{Needed: 1, Set: "s", NewUntil: known}, true, known},
		"its quarantines are over":     {redlock.Status{Needed: 1, Set: "s", Masters: voting}, true, time.Time{}},
		"another process has begun it": {redlock.Status{Needed: 1, Set: "s", NewUntil: known}, false, known},
		"an old set":                   {redlock.Status{Needed: 1, Set: "s"}, false, time.Time{}},
	} {
		if got := newSetUntil(row.status, row.blank, begins); !got.Equal(row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
