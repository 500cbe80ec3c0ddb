package proxy

import (
	"io"
	"log/slog"
)

// NewLogger makes the logger that the configuration asks for.
func NewLogger(cfg *Config, w io.Writer) *slog.Logger {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	options := &slog.HandlerOptions{Level: levels[cfg.Log.Level]}
	if cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
