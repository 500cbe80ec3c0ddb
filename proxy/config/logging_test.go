package config

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

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
