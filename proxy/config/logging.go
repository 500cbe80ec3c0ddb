package config

import (
	"io"
	"log/slog"
)

// SlogLevel converts the level for package slog.
func (l Log) SlogLevel() (level slog.Level) {
	_ = level.UnmarshalText([]byte(l.Level)) // the words are slog's
	return level
}

// NewLogger makes the logger that the configuration asks for. The second result changes
// its level later.
func NewLogger(cfg *Config, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(cfg.Log.SlogLevel())
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit}
	if cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}

// withUnit writes a duration with its unit, because in JSON it would be a bare number.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
