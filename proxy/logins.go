package proxy

import (
	"log/slog"
	"net"
	"time"
)

// refuseLogin makes a refused login known. user is a configured name or a word
// for others; what the client has sent is told nobody.
func (srv *proxyServer) refuseLogin(user string, from net.Addr) {
	srv.cfg.metrics.LoginRefused()
	if count, due := srv.refusedLogins.due(time.Now()); due {
		srv.cfg.log.Warn("a client gave a wrong user name or password",
			slog.String("client", from.String()), slog.String("user", user), slog.Int("refused_since_last_line", count))
	}
}
