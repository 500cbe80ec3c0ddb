package inspect

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// inspectTimeout bounds asking one server what it is.
const inspectTimeout = 2 * time.Second

// Facts are what one server said about itself.
type Facts struct {
	title     string // upstream, master 1
	Name      string
	encrypted bool
	Err       error  // not reached, or it let nobody in
	Version   string // as a client sees it: redis_version
	product   string // redis, or what the server calls itself
	role      string
	runID     string
	cluster   bool
	maxmemory bool   // a limit is set
	policy    string // what it does at that limit
	// appendOnly: it writes a log of all changes to disk.
	appendOnly bool
	databases  int   // 0: it did not say
	untold     error // INFO was refused, so that only its answering is known
	sentinels  endpoint.SentinelReport

	// Of masters only.
	persistence string // what it keeps on disk; empty: it did not say
	missing     []missingRight
	marker      markerFacts
}

// Servers asks all servers at once what they are, for about 2 s at most, and
// changes nothing on them. A server that does not answer has its Err set. masters
// keep the configuration's order; upstream is nil where there is none outside the
// process.
func Servers(ctx context.Context, cfg *config.Config) (upstream *Facts, masters []Facts) {
	return knownRights(nil).askServers(ctx, cfg)
}

// askServers does not ask again for rights that are known: what is missing would
// stand in the server's log each time.
func (k knownRights) askServers(ctx context.Context, cfg *config.Config) (upstream *Facts, masters []Facts) {
	var asking sync.WaitGroup
	if cfg.Upstream.Kind == config.UpstreamServer {
		upstream = &Facts{title: "upstream", Name: cfg.Upstream.Server.Name, encrypted: cfg.Upstream.Server.TLS != nil}
		asking.Go(func() { upstream.ask(ctx, cfg.Upstream.Server) })
	}
	masters = make([]Facts, len(cfg.Masters.Servers))
	for i, server := range cfg.Masters.Servers {
		masters[i] = Facts{title: "master " + strconv.Itoa(i+1), Name: server.Name, encrypted: server.TLS != nil}
		asking.Go(func() { masters[i].askMaster(ctx, server, cfg.Locks, k) })
	}
	asking.Wait()
	return upstream, masters
}

func (f *Facts) ask(ctx context.Context, server endpoint.Endpoint) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	f.sentinels = server.AskSentinels(ctx)
	client := redis.NewClient(server.Options())
	defer client.Close()
	f.askWith(ctx, client)
}

// askMaster is ask, and what only matters on a master.
func (f *Facts) askMaster(ctx context.Context, server endpoint.Endpoint, rules route.Rules, known knownRights) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	f.sentinels = server.AskSentinels(ctx)
	client := redis.NewClient(server.Options())
	defer client.Close()
	if f.askWith(ctx, client); f.Err != nil {
		return
	}
	if f.missing, f.Err = known.ask(ctx, client, f, rules); f.Err != nil {
		return
	}
	text, err := client.Get(ctx, redlock.MarkerKey).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		f.marker.unread = err
	}
	f.marker.text = text
	if now, err := client.Time(ctx).Result(); err == nil {
		f.marker.clock = now
	}
	if saves, err := client.ConfigGet(ctx, "save").Result(); err == nil {
		f.persistence = describePersistence(f.appendOnly, saves["save"] != "")
	}
}

func describePersistence(appendOnly, snapshots bool) string {
	switch {
	case appendOnly && snapshots:
		return "aof, rdb"
	case appendOnly:
		return "aof"
	case snapshots:
		return "rdb"
	}
	return "none"
}

func (f *Facts) askWith(ctx context.Context, client *redis.Client) {
	if f.Err = client.Ping(ctx).Err(); f.Err != nil {
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
func (f *Facts) learn(info string) {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	f.product, f.Version = "redis", fields["redis_version"]
	if name := fields["server_name"]; name != "" {
		f.product = name
	}
	f.role, f.runID = fields["role"], fields["run_id"]
	f.cluster = fields["redis_mode"] == "cluster" || fields["cluster_enabled"] == "1"
	f.maxmemory = fields["maxmemory"] != "" && fields["maxmemory"] != "0"
	f.policy = fields["maxmemory_policy"]
	f.appendOnly = fields["aof_enabled"] == "1"
}
