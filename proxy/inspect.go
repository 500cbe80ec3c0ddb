package proxy

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// go-redis writes failed dials to stderr in its own format; here every error
// comes back to who asked.
func init() { logging.Disable() }

// inspectTimeout bounds asking one server what it is.
const inspectTimeout = 2 * time.Second

// serverFacts is what a server said about itself.
type serverFacts struct {
	title     string // upstream, master 1
	name      string
	err       error  // not reached, or it let nobody in
	version   string // as a client sees it: redis_version
	product   string // redis, or what the server calls itself
	role      string
	runID     string
	cluster   bool
	maxmemory bool   // a limit is set
	policy    string // what it does at that limit
	databases int    // 0: it did not say
	untold    error  // INFO was refused, so that only its answering is known
}

// inspectServers asks all servers at once; the results keep their order.
func inspectServers(ctx context.Context, cfg *Config) (upstream *serverFacts, masters []serverFacts) {
	var asking sync.WaitGroup
	if cfg.Upstream.Kind == UpstreamServer {
		upstream = &serverFacts{title: "upstream", name: cfg.Upstream.server.name}
		asking.Go(func() { upstream.ask(ctx, cfg.Upstream.server) })
	}
	masters = make([]serverFacts, len(cfg.Masters.servers))
	for i, server := range cfg.Masters.servers {
		masters[i] = serverFacts{title: "master " + strconv.Itoa(i+1), name: server.name}
		asking.Go(func() { masters[i].ask(ctx, server) })
	}
	asking.Wait()
	return upstream, masters
}

func (f *serverFacts) ask(ctx context.Context, server endpoint) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	client := redis.NewClient(server.clientOptions())
	defer client.Close()
	if f.err = client.Ping(ctx).Err(); f.err != nil {
		return
	}
	info, err := client.Info(ctx).Result()
	if err != nil {
		f.untold = err
		return
	}
	f.learn(info)
	// Managed servers often forbid CONFIG; the number is then not known.
	if settings, err := client.ConfigGet(ctx, "databases").Result(); err == nil {
		f.databases, _ = strconv.Atoi(settings["databases"])
	}
}

// learn takes the facts from an INFO reply.
func (f *serverFacts) learn(info string) {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	f.product, f.version = "redis", fields["redis_version"]
	if name := fields["server_name"]; name != "" {
		f.product = name
	}
	f.role, f.runID = fields["role"], fields["run_id"]
	f.cluster = fields["redis_mode"] == "cluster" || fields["cluster_enabled"] == "1"
	f.maxmemory = fields["maxmemory"] != "" && fields["maxmemory"] != "0"
	f.policy = fields["maxmemory_policy"]
}
