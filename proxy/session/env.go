package session

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/redlock/loop"
)

// An Env is shared by the sessions of a process. Many goroutines may use it at once.
type Env struct {
	Clock    *conn.Clock    // the server's sweep advances it
	Budget   *conn.Budget   // memory for the buffers of clients
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
		Clock:   new(conn.Clock),
		Budget:  conn.NewBudget(func() int64 { return active.Load().Limits.Memory }),
		Active:  active,
		Metrics: meter,
		Log:     log,
		Loop:    l,
	}
	e.Upstream = upstream.NewPool(e.Clock, e.Budget, l, func(err error) {
		if defect, is := errors.AsType[upstream.Defect](err); is {
			meter.PanicRecovered()
			log.Error("closing upstream connection: panic in the proxy (please report)", slog.Any("panic", defect.Reason), slog.String("stack", string(debug.Stack())))
			return
		}
		meter.UpstreamProtocolError()
		log.Error("closing upstream connection: unexpected reply (out of sync)", slog.Any("error", err))
	})
	return e
}
