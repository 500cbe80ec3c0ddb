package proxy

import (
	"log/slog"

	"redlock-proxy/proxy/config"
)

// filesFor is how many open files so many clients may need: one each, one for
// its upstream connection, and some for masters, listeners and the system.
func filesFor(clients int) uint64 { return uint64(2*clients + 100) }

// A fileWatch tells an operator that the system's limit of open files will keep
// clients out before limits.clients does, once so many are connected that it is
// near.
type fileWatch struct {
	allowed func() (uint64, bool)
	log     *slog.Logger
	told    bool
}

func (w *fileWatch) look(clients int, limits *config.Limits) {
	allowed, known := w.allowed()
	near := filesFor(clients) > allowed/5*4
	switch {
	case !known || filesFor(limits.Clients) <= allowed || filesFor(clients) < allowed/2:
		w.told = false
	case near && !w.told:
		w.told = true
		w.log.Warn("the open files that this process may have will be used up before limits.clients is reached; raise that (ulimit -n, LimitNOFILE=) or lower limits.clients",
			"clients", clients, "limits.clients", limits.Clients, "open_files_allowed", allowed)
	}
}
