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

// Answers are what the servers of a configuration said about themselves.
type Answers struct {
	Config   *config.Config
	Upstream *Facts  // nil: there is none outside the process
	Masters  []Facts // in the configuration's order
}

// Facts are the answers of one server, and a row of -check. What it did not say is empty or 0.
type Facts struct {
	Title       string `json:"server"` // upstream, master 1
	Name        string `json:"address"`
	TLS         bool   `json:"tls"`
	State       string `json:"state"`   // set in a Report; of the upstream: reachable or unreachable
	Product     string `json:"product"` // redis, or what the server calls itself
	Version     string `json:"version"` // redis_version, which clients see
	Role        string `json:"role"`
	Cluster     bool   `json:"cluster"`
	Databases   int    `json:"databases"`
	Policy      string `json:"maxmemory_policy"` // the action at the memory limit
	Persistence string `json:"persistence"`      // of a master: aof, rdb, both or none
	RunID       string `json:"run_id"`

	Err       error `json:"-"` // why the server cannot be used: unreachable, or it refused the login
	untold    error // why it refused INFO; then it is only known that it answers
	maxmemory bool  // a limit is set
	unsaved   bool  // it refuses writes, because it cannot write to its disk
	sentinels endpoint.SentinelReport

	// For masters only.
	appendOnly bool // it writes a log of all changes to disk
	missing    []missingRight
	refusal    string // why it refuses to take locks; empty if it does not
	marker     markerFacts
}

// Ask asks all servers at once about themselves, for about 2 s at most, and changes
// nothing on them. It sets Err for a server that does not answer.
func Ask(ctx context.Context, cfg *config.Config) Answers {
	a := Answers{Config: cfg, Masters: make([]Facts, len(cfg.Masters.Servers))}
	if cfg.Upstream.Kind == config.UpstreamServer {
		a.Upstream = newFacts("upstream", cfg.Upstream.Server)
	}
	for i, server := range cfg.Masters.Servers {
		a.Masters[i] = *newFacts("master "+strconv.Itoa(i+1), server)
		a.Masters[i].Err = errors.New("not asked yet")
	}
	return a.again(ctx)
}

func newFacts(title string, server endpoint.Endpoint) *Facts {
	return &Facts{Title: title, Name: server.Name, TLS: server.TLS != nil}
}

// again asks the upstream, and the masters that have not answered.
func (a Answers) again(ctx context.Context) Answers {
	var asking sync.WaitGroup
	if a.Upstream != nil {
		a.Upstream = newFacts("upstream", a.Config.Upstream.Server)
		asking.Go(func() { a.Upstream.ask(ctx, a.Config.Upstream.Server, nil) })
	}
	a.Masters = slices.Clone(a.Masters)
	for i, server := range a.Config.Masters.Servers {
		if f := &a.Masters[i]; f.Err != nil {
			*f = *newFacts(f.Title, server)
			asking.Go(func() {
				f.ask(ctx, server, func(ctx context.Context, client *redis.Client) error {
					return f.askMaster(ctx, client, a.Config.Locks)
				})
			})
		}
	}
	asking.Wait()
	return a
}

// recalling returns the answers with what servers that do not answer now said before: it may still be so.
func (a Answers) recalling(before Answers) Answers {
	if up := a.Upstream; up != nil && up.Err != nil && before.Upstream != nil && before.Upstream.Name == up.Name {
		said := *before.Upstream
		said.Err = up.Err
		a.Upstream = &said
	}
	a.Masters = slices.Clone(a.Masters)
	for i := range a.Masters {
		f := &a.Masters[i]
		at := slices.IndexFunc(before.Masters, func(b Facts) bool { return b.Name == f.Name })
		if f.Err == nil || at < 0 {
			continue
		}
		title, err := f.Title, f.Err
		*f = before.Masters[at]
		f.Title, f.Err = title, err
	}
	return a
}

// all are the facts of all servers, the upstream's first.
func (a Answers) all() []Facts {
	if a.Upstream == nil {
		return a.Masters
	}
	return append([]Facts{*a.Upstream}, a.Masters...)
}

// ask asks one server. more asks what matters for a master only.
func (f *Facts) ask(ctx context.Context, server endpoint.Endpoint, more func(context.Context, *redis.Client) error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	f.sentinels = server.AskSentinels(ctx)
	client := redis.NewClient(server.Options())
	defer client.Close()
	f.askAnyServer(ctx, client)
	if f.Err == nil && more != nil {
		f.Err = more(ctx, client)
	}
	f.Err = server.Explain(f.Err)
}

func (f *Facts) askAnyServer(ctx context.Context, client *redis.Client) {
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
		f.Databases, _ = strconv.Atoi(settings["databases"])
	}
}

func (f *Facts) askMaster(ctx context.Context, client *redis.Client, rules route.Rules) (err error) {
	if f.missing, err = askRights(ctx, client, rules); err != nil {
		return err
	}
	if !slices.ContainsFunc(f.missing, func(r missingRight) bool { return r.vital }) {
		f.refusal = askWrite(ctx, client)
	}
	if f.marker.text, err = client.Get(ctx, redlock.MarkerKey).Result(); !errors.Is(err, redis.Nil) {
		f.marker.unread = err
	}
	f.marker.clock, _ = client.Time(ctx).Result()
	if saves, err := client.ConfigGet(ctx, "save").Result(); err == nil {
		f.Persistence = map[[2]bool]string{{true, true}: "aof, rdb", {true, false}: "aof", {false, true}: "rdb", {}: "none"}[[2]bool{f.appendOnly, saves["save"] != ""}]
	}
	return nil
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
	f.Product, f.Version = "redis", fields["redis_version"]
	if name := fields["server_name"]; name != "" {
		f.Product = name
	}
	f.Role, f.RunID = fields["role"], fields["run_id"]
	f.Cluster = fields["redis_mode"] == "cluster" || fields["cluster_enabled"] == "1"
	f.maxmemory = fields["maxmemory"] != "" && fields["maxmemory"] != "0"
	f.Policy = fields["maxmemory_policy"]
	f.appendOnly = fields["aof_enabled"] == "1"
}

// isReplica tells whether the server says that it is a replica.
func (f Facts) isReplica() bool { return f.Err == nil && f.untold == nil && f.Role != "master" }

// mayEvict tells whether the server may evict locks when its memory is full.
func (f Facts) mayEvict() bool { return f.maxmemory && f.Policy != "noeviction" }
