package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// parseConfig is parse without flags.
func parseConfig(file string, text []byte) (*Config, error) { return parse(file, text, Flags{}) }

// The shipped file promises to show the defaults and to be equal to -demo.
func TestShippedConfigIsTheDefaults(t *testing.T) {
	const file = "../../config.yaml"
	shipped, err := Load(file, Flags{})
	if err != nil {
		t.Fatal(err)
	}
	want := Demo()
	want.Source = file
	shipped.places = nil
	if !reflect.DeepEqual(shipped, want) {
		t.Errorf("the shipped file and the defaults differ:\n%+v\n%+v", shipped, want)
	}
}

// Without a file nothing starts, least of all embedded servers that grant every lock.
func TestLoadWithoutAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Load("", Flags{}); err == nil || !strings.Contains(err.Error(), "config.yaml does not exist") || !strings.Contains(err.Error(), "start it with -demo: it starts redis-server if that is installed, or else uses embedded servers;") {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile("config.yaml", []byte("upstream: none\nmasters: embedded\nlisten: :7000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load("", Flags{})
	if err != nil || cfg.Listen != ":7000" || cfg.Source != "config.yaml" {
		t.Fatalf("config.yaml in the working directory was not read: %+v, %v", cfg, err)
	}
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	if _, err = Load(missing, Flags{}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a named file that is missing gave %v", err)
	}
}

// No way of printing a configuration shows a password.
func TestConfigPrintsNoSecrets(t *testing.T) {
	cfg, err := parseConfig("f", []byte("upstream: redis://u:hunter2@a\nmasters: [redis://u:hunter2@b]\nauth: {password: hunter2}"))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		fmt.Fprintf(&text, verb+verb, cfg, *cfg)
	}
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", "cfg", cfg)
	slog.New(slog.NewJSONHandler(&text, nil)).Info("x", "cfg", cfg, "password", cfg.Auth.Password)
	json.NewEncoder(&text).Encode(cfg)
	if strings.Contains(text.String(), "hunter2") || strings.Contains(text.String(), "68756e74657232") {
		t.Errorf("the password is shown:\n%s", text.String())
	}
}

func FuzzConfigNeverPanics(f *testing.F) {
	f.Add("upstream: none\nmasters: embedded\n")
	f.Add("a: &x [*x]\n")
	f.Add("locks: [{match: \"\", db: -1}]\n? [a]: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := parseConfig("f", []byte(text))
		if (cfg == nil) == (err == nil) {
			t.Fatalf("got %v and %v", cfg, err)
		}
	})
}

func FuzzConfigValues(f *testing.F) {
	for _, text := range []string{"50ms", "-1h", "512mb", "9223372036854775807gb", "64K", "0.5", "NaN", "0x1p-2", "127.0.0.1:6380", "[::]:0", "unix:/run/s", "unix:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(value any, bounds string) error {
			return setting{place: value, allowed: bounds}.set(text)
		}
		var d time.Duration
		if read(&d, "0s 1h") == nil && (d < 0 || d > time.Hour) {
			t.Errorf("%q is read as the duration %s", text, d)
		}
		var n int64
		if read(&n, "1kb 1024gb") == nil && (n < 1<<10 || n > 1<<40) {
			t.Errorf("%q is read as %d bytes", text, n)
		}
		var x float64
		if read(&x, "0 0.5") == nil && !(x >= 0 && x <= 0.5) {
			t.Errorf("%q is read as %g", text, x)
		}
		_ = CheckListen(text, true)
	})
}

// A duration in the log says its unit, in JSON too, where it would be a number
// of nanoseconds.
func TestDurationsInTheLogHaveUnits(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		cfg := Demo()
		cfg.Log.Format = format
		var out bytes.Buffer
		log, _ := NewLogger(cfg, &out)
		log.Info("x", "took", 1500*time.Microsecond, slog.Group("inner", "pause", time.Second))
		if text := out.String(); !strings.Contains(text, "1.5ms") || !strings.Contains(text, "1s") {
			t.Errorf("%s: %s", format, text)
		}
	}
}
