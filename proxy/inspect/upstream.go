package inspect

import (
	"context"
	"net"
	"time"

	"redlock-proxy/proxy/config"
)

// An Upstream is the upstream outside this process, as the last look found it.
type Upstream struct {
	Name    string
	Problem string    // why it cannot be used; empty: it can
	Since   time.Time // when that, or its use, began for this process
}

// Upstream returns the upstream outside this process. ok is false if there is none.
func (s *Monitor) Upstream() (u Upstream, ok bool) {
	if seen := s.upstream.Load(); seen != nil {
		return *seen, true
	}
	return Upstream{}, false
}

// sees records what a look found of the upstream. It logs once that it cannot be used, and once that
// it can be used again.
func (s *Monitor) sees(f *Facts, now time.Time) {
	if f == nil {
		s.upstream.Store(nil)
		return
	}
	seen := Upstream{Name: f.Name, Since: now}
	if f.Err != nil {
		seen.Problem = f.Err.Error()
	}
	before, known := s.Upstream()
	known = known && before.Name == f.Name
	changed := (before.Problem == "") != (seen.Problem == "")
	if known && !changed {
		seen.Since = before.Since
	}
	s.upstream.Store(&seen)
	switch {
	case seen.Problem != "" && (!known || changed):
		s.log.Error("the upstream cannot be used: clients hear NOUPSTREAM, but for locks", "upstream", f.Name, "error", seen.Problem)
	case seen.Problem == "" && known && changed:
		s.log.Info("the upstream can be used again", "upstream", f.Name, "after", now.Sub(before.Since).Round(time.Millisecond))
	}
}

// upstreamPause is the time between two dials of the upstream's watch.
const upstreamPause = time.Second

// WatchUpstream has Run look at once when the upstream goes away or comes back, until ctx ends. It
// keeps one idle connection to the upstream, which ends with it. No command is sent there, because a
// client's MONITOR would show it.
func (s *Monitor) WatchUpstream(ctx context.Context) {
	for ctx.Err() == nil {
		cfg := s.current.Load().Config
		if cfg.Upstream.Kind == config.UpstreamServer {
			conn, err := dial(ctx, cfg)
			if seen, _ := s.Upstream(); (err == nil) != (seen.Problem == "") {
				s.Soon()
			}
			if err == nil {
				s.hold(ctx, conn, cfg)
				s.Soon()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(upstreamPause):
		}
	}
}

func dial(ctx context.Context, cfg *config.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	return cfg.Upstream.Server.Dial(ctx)
}

// hold returns when the connection has ended, or a reload has changed the configuration.
func (s *Monitor) hold(ctx context.Context, conn net.Conn, cfg *config.Config) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for s.current.Load().Config == cfg {
		_ = conn.SetReadDeadline(time.Now().Add(upstreamPause))
		_, err := conn.Read(make([]byte, 1)) // nothing was asked
		if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
			return
		}
	}
}
