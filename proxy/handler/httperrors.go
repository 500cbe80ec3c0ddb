package handler

import (
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// HTTPErrors is the log for an HTTP server's own errors. It takes one each acceptLogPause, because
// at the limit of open files such a server has one a second.
func HTTPErrors(to *slog.Logger) *log.Logger { return log.New(&httpErrors{to: to}, "", 0) }

type httpErrors struct {
	to   *slog.Logger
	mu   sync.Mutex
	last time.Time
}

// Write implements io.Writer for one error.
func (e *httpErrors) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.last) >= acceptLogPause {
		e.last = now
		e.to.Warn("the HTTP server of the admin address had an error; raise the limit of open files if that is the cause", "error", strings.TrimSpace(string(line)))
	}
	return len(line), nil
}
