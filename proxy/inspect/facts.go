package inspect

import (
	"context"
	"errors"
	"slices"
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

// inspectTimeout bounds all questions to one server together.
const inspectTimeout = 2 * time.Second

// Facts are the answers of one server about itself.
type Facts struct {
	title     string // upstream, master 1
	Name      string
	encrypted bool
	Err       error  // why the server cannot be used: unreachable, or it refused the login
	Version   string // redis_version, which clients see
	product   string // redis, or what the server calls itself
	role      string
	runID     string
	cluster   bool
	maxmemory bool   // a limit is set
	policy    string // maxmemory_policy, the action at that limit
	unsaved   bool   // it refuses writes, because it cannot write to its disk
	// appendOnly means that the server writes a log of all changes to disk.
	appendOnly bool
	databases  int   // 0: unknown
	untold     error // why it refused INFO; then it is only known that it answers
	sentinels  endpoint.SentinelReport

	// For masters only.
	persistence string // aof, rdb, both or none; empty: unknown
	missing     []missingRight
	refusal     string // why it refuses to take locks; empty if it does not
	marker      markerFacts
}

// Servers asks all servers at once about themselves, for about 2 s at most, and changes
// nothing on them. It sets Err for a server that does not answer. masters keep the
// configuration's order. upstream is nil if there is none outside the process.
func Servers(ctx context.Context, cfg *config.Config) (upstream *Facts, masters []Facts) {
	return askServers(ctx, cfg, nil)
}

// askServers is Servers, but does not ask the masters whose answers are known.
func askServers(ctx context.Context, cfg *config.Config, known map[string]Facts) (upstream *Facts, masters []Facts) {
	var asking sync.WaitGroup
	if cfg.Upstream.Kind == config.UpstreamServer {
		upstream = &Facts{title: "upstream", Name: cfg.Upstream.Server.Name, encrypted: cfg.Upstream.Server.TLS != nil}
		asking.Go(func() { upstream.ask(ctx, cfg.Upstream.Server) })
	}
	masters = make([]Facts, len(cfg.Masters.Servers))
	for i, server := range cfg.Masters.Servers {
		masters[i] = Facts{title: "master " + strconv.Itoa(i+1), Name: server.Name, encrypted: server.TLS != nil}
		if old, ok := known[masters[i].id()]; ok && old.Err == nil {
			masters[i] = old
			continue
		}
		asking.Go(func() { masters[i].askMaster(ctx, server, cfg.Locks) })
	}
	asking.Wait()
	return upstream, masters
}

// id tells the servers apart in one process. The upstream may be a master, too.
func (f *Facts) id() string { return f.title + " " + f.Name }

func (f *Facts) ask(ctx context.Context, server endpoint.Endpoint) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	f.sentinels = server.AskSentinels(ctx)
	client := redis.NewClient(server.Options())
	defer client.Close()
	f.askWith(ctx, client)
	f.Err = server.Explain(f.Err)
}

// askMaster is ask, with more questions that matter only for a master.
func (f *Facts) askMaster(ctx context.Context, server endpoint.Endpoint, rules route.Rules) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	f.sentinels = server.AskSentinels(ctx)
	client := redis.NewClient(server.Options())
	defer client.Close()
	if f.askWith(ctx, client); f.Err == nil {
		f.missing, f.Err = askRights(ctx, client, rules)
	}
	if f.Err != nil {
		f.Err = server.Explain(f.Err)
		return
	}
	if !slices.ContainsFunc(f.missing, func(r missingRight) bool { return r.vital }) {
		f.refusal = askWrite(ctx, client)
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

// askWrite returns why a master refuses to take locks, or an empty text.
func askWrite(ctx context.Context, client *redis.Client) string {
	var command []any
	for _, arg := range redlock.WriteProbe() {
		command = append(command, arg)
	}
	var refusal redis.Error
	if err := client.Do(ctx, command...).Err(); errors.As(err, &refusal) && refusal != redis.Nil {
		return redlock.Refusal(refusal.Error())
	}
	return ""
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
	f.Err = client.Ping(ctx).Err()
	if f.unsaved = f.Err != nil && strings.HasPrefix(f.Err.Error(), "MISCONF"); f.unsaved {
		f.Err = nil // it refuses PING as it refuses writes, and answers all other questions
	}
	if f.Err != nil {
		return
	}
	if f.Err = refusedPassword(ctx, client); f.Err != nil {
		return
	}
	info, err := client.Info(ctx).Result()
	if err != nil {
		f.untold = err
		return
	}
	f.learn(info)
	// Managed servers often forbid CONFIG. Then the number is unknown.
	if settings, err := client.ConfigGet(ctx, "databases").Result(); err == nil {
		f.databases, _ = strconv.Atoi(settings["databases"])
	}
}

// refusedPassword returns the error of a server that has no password, if its URL has one. The
// proxy's connections log in by AUTH, which such a server refuses. The client library uses HELLO,
// and there Redis lets the user default in with any password.
func refusedPassword(ctx context.Context, client *redis.Client) error {
	if o := client.Options(); o.Password != "" && o.Username == "" {
		err := client.Do(ctx, "AUTH", o.Password).Err()
		if err != nil && strings.HasPrefix(err.Error(), "ERR AUTH <password> called without any password") { // another error might quote the password
			return err
		}
	}
	return nil
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

// isReplica tells whether the server says that it is a replica.
func (f Facts) isReplica() bool { return f.Err == nil && f.untold == nil && f.role != "master" }

// mayEvict tells whether the server may evict locks when its memory is full.
func (f Facts) mayEvict() bool { return f.maxmemory && f.policy != "noeviction" }
