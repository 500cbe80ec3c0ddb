package proxy

import (
	"io"
	"log/slog"

	"redlock-proxy/proxy/config"
)

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// NewLogger makes the logger that the configuration asks for, and returns what
// sets its level later.
func NewLogger(cfg *config.Config, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(logLevels[cfg.Log.Level])
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit}
	if cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}

// withUnit has a duration say its unit, for in JSON it would be a number.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
