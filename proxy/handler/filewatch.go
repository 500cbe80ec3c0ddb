package handler

import (
	"log/slog"

	"redlock-proxy/proxy/config"
)

// filesFor returns the number of open files that this number of clients may need. Each
// client needs one, and one for its upstream connection. Masters, listeners and the system
// need some more.
func filesFor(clients int) uint64 { return uint64(2*clients + 100) }

// A fileWatch logs a warning if the system's limit of open files will refuse clients before
// limits.clients does. It warns once, when the number of clients comes near that limit.
type fileWatch struct {
	allowed func() (uint64, bool)
	log     *slog.Logger
	warned  bool
}

func (w *fileWatch) look(clients int, limits *config.Limits) {
	allowed, known := w.allowed()
	near := filesFor(clients) > allowed/5*4
	switch {
	case !known || filesFor(limits.Clients) <= allowed || filesFor(clients) < allowed/2:
		w.warned = false
	case near && !w.warned:
		w.warned = true
		w.log.Warn("the limit of open files will be reached before limits.clients; raise it (ulimit -n, LimitNOFILE=) or lower limits.clients",
			"clients", clients, "limits.clients", limits.Clients, "open_files_allowed", allowed)
	}
}
