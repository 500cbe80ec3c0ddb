package session

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/redlock/loop"
)

// An Env is shared by the sessions of a process. Many goroutines may use it at once.
type Env struct {
	Budget   *Budget        // memory for the buffers of clients
	Active   *config.Active // the settings, which a reload replaces
	Metrics  *events.Metrics
	Log      *slog.Logger
	Loop     *loop.Loop     // runs the sessions
	Upstream *upstream.Pool // connections to the ordinary Redis
	Reached  atomic.Int64   // how often a session got a connection to the upstream, its own or a shared one

	handshakes, dials events.Throttle // limit log lines about those that failed
}

// NewEnv makes the Env of a process. The owner closes Upstream.
func NewEnv(active *config.Active, meter *events.Metrics, log *slog.Logger, l *loop.Loop) *Env {
	e := &Env{
		Budget:  NewBudget(func() int64 { return active.Load().Limits.Memory }),
		Active:  active,
		Metrics: meter,
		Log:     log,
		Loop:    l,
	}
	e.Upstream = upstream.NewPool(l, e.Budget.Reserve, func(err error) {
		if errors.Is(err, loop.ErrPanicked) {
			meter.PanicRecovered()
			log.Error("closing upstream connection: panic in the proxy (please report the line with its stack)")
			return
		}
		meter.UpstreamProtocolError()
		log.Error("closing upstream connection: unexpected reply, out of sync (deploy/INCIDENTS.md#redlockupstreambroken)", slog.Any("error", err))
	})
	return e
}
