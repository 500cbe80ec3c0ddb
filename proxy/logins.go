package proxy

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// refusedLoginEvery is how often refused logins are logged at most: somebody
// who tries passwords must not fill the log.
const refusedLoginEvery = time.Second

// refusedLogins counts those that are not logged one by one.
type refusedLogins struct {
	mu     sync.Mutex
	logged time.Time
	since  int // refused since then
}

// due tells whether to log now, and how many were refused since the last time,
// this one included.
func (r *refusedLogins) due(now time.Time) (count int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since++
	if now.Sub(r.logged) < refusedLoginEvery {
		return 0, false
	}
	count, r.since, r.logged = r.since, 0, now
	return count, true
}

// refuseLogin makes a refused login known. user is a configured name or a word
// for others; what the client has sent is told nobody.
func (srv *proxyServer) refuseLogin(user string, from net.Addr) {
	srv.cfg.metrics.loginRefused()
	if count, due := srv.refused.due(time.Now()); due {
		srv.cfg.log.Warn("a client gave a wrong user name or password",
			slog.String("client", from.String()), slog.String("user", user), slog.Int("refused_since_last_line", count))
	}
}
