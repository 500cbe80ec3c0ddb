package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/inspect"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// reloadPatience bounds a reload's talk with the servers; replacing a master
// writes to a majority of them.
const reloadPatience = 15 * time.Second

// Reload reads the configuration file again, as Load does, and puts it in force
// whole or not at all. What went wrong is returned, and logged and
// counted here. Clients keep their connections:
//
//   - rules and limits hold from each client's next command. Keys that move to
//     or from the lock masters with the rules are held back for a while
//     (moves.go), so only a reload with moveKeys moves any.
//   - Passwords hold from the next login; who is authenticated stays so. A
//     user's rights hold from the next command. Connections of a user who is no
//     more are closed, and those that listen to what their user may not.
//   - Another upstream, or other credentials for it, hold from a session's next
//     upstream connection; those that are open stay.
//   - Masters are entered anew where needed, and one of them may be replaced by
//     another server; redlock.Locker says when that is safe.
//   - listen, admin, log.format, embedded servers, and the number and order of
//     the masters stay as they are: a file that changes them is refused.
//
// A server that is new must answer, and one with other credentials must accept
// them, or the reload is refused.
//
// The report is what people should know of a reload that was not refused.
func (p *Proxy) Reload(ctx context.Context, moveKeys bool) (report string, err error) {
	ctx, cancel := context.WithTimeout(ctx, reloadPatience)
	defer cancel()
	defer context.AfterFunc(p.lives, cancel)()
	select {
	case p.reloading <- struct{}{}:
		defer func() { <-p.reloading }()
	case <-ctx.Done():
	}
	if err := p.mayReload(ctx); err != nil {
		return "", err
	}
	changes, err := p.reload(ctx, moveKeys)
	if err != nil {
		p.metrics.ReloadRefused()
		for line := range strings.SplitSeq(err.Error(), "\n") {
			p.log.Error("the configuration was not reloaded and the old one stays in force", "reason", line)
		}
		return "", err
	}
	p.metrics.ReloadApplied(shownOf(p.current.Load().Config, time.Now()))
	if len(changes) == 0 {
		changes = []string{"nothing"}
	}
	p.log.Info("the configuration was reloaded", "file", p.current.Load().Config.Source, "changed", strings.Join(changes, "; "))
	return strings.Join(append([]string{"the configuration was reloaded"}, p.movingKeys()...), "\n"), nil
}

// movingKeys says which commands are answered with an error because lock rules
// were changed, and until when.
func (p *Proxy) movingKeys() []string {
	var lines []string
	for _, moving := range p.current.Load().Router.Moving(time.Now()) {
		lines = append(lines, describeMoving(moving))
	}
	return lines
}

// describeMoving says until when a rule's keys are held back: commands on keys of
// "job:*" are answered TRYAGAIN until 2026-11-21T05:10:00Z.
func describeMoving(m route.MovingRule) string {
	return "commands on keys of " + config.DescribeCoverage(m.Rule) + " are answered TRYAGAIN until " + config.Timestamp(m.Until)
}

// mayReload tells what ends a reload early: the process ends, who asked for it
// has gone, or it has taken too long.
func (p *Proxy) mayReload(ctx context.Context) error {
	switch {
	case p.draining.Load():
		return errors.New("the proxy is ending")
	case ctx.Err() != nil:
		return fmt.Errorf("the reload was given up: %w", ctx.Err())
	}
	return nil
}

// reload refuses first whatever can be refused, and changes last what cannot
// fail.
func (p *Proxy) reload(ctx context.Context, moveKeys bool) (changes []string, err error) {
	old := p.current.Load()
	if old.Config.Source == config.DemoSource {
		return nil, errors.New("the process was started with -demo, so there is no configuration file to read again")
	}
	next, err := config.Load(old.Config.Source)
	if err != nil {
		return nil, err
	}
	plan, err := config.PlanReload(old.Config, next)
	if err != nil {
		return nil, err
	}
	upstream, masters := inspect.Servers(ctx, next)
	if err := p.mayReload(ctx); err != nil {
		return nil, err
	}
	if err := inspect.Refused(inspect.Hazards(next, upstream, masters)); err != nil {
		return nil, err
	}
	if err := refusedBy(plan, next, upstream, masters); err != nil {
		return nil, err
	}
	if !moveKeys {
		if err := p.refusedMove(next, time.Now()); err != nil {
			return nil, err
		}
	}
	upstreamEntry, masterEntries := p.endpoints(next)
	if plan.Locker {
		if err := p.locker.Reload(ctx, p.lockerConfig(next, masterEntries)); err != nil {
			return nil, err
		}
	}
	p.apply(next, upstreamEntry, masterEntries, time.Now())
	if plan.Replaced >= 0 {
		p.metrics.ForgetMaster(old.Masters[plan.Replaced].Name)
	}
	return plan.Changes, nil
}

// refusedMove is why a reload that was not told to move keys does not put rules
// in force: what would come of it is to be known before.
func (p *Proxy) refusedMove(next *config.Config, now time.Time) error {
	router := p.current.Load().Router
	if route.SameCoverage(router.Rules, next.Locks) {
		return nil
	}
	lines := []string{"the lock rules would move keys to or from the lock masters, and a reload does that only by redlock-proxy -reload -move-keys; then:"}
	for _, moving := range router.WithRules(next.Locks, now, next.MaxQuarantine, longestLock(p.locker.Status(), next)).Moving(now) {
		lines = append(lines, describeMoving(moving))
	}
	if len(lines) == 1 {
		lines = append(lines, "all keys can be used at once, for nobody was granted any of them where they were meanwhile")
	}
	return errors.New(strings.Join(lines, "\n"))
}

// refusedBy tells which servers speak against the plan.
func refusedBy(plan config.Plan, next *config.Config, upstream *inspect.Facts, masters []inspect.Facts) error {
	var refused config.Error
	judge := func(key string, f *inspect.Facts, isNew bool) {
		var answer redis.Error // the server's own, in contrast to one of the network
		switch {
		case f.Err == nil:
		case isNew:
			refused = append(refused, next.Problem(key, "%s cannot be used: %v", f.Name, f.Err))
		case slices.Contains(plan.Entered, key) && errors.As(f.Err, &answer):
			refused = append(refused, next.Problem(key, "%s does not accept the new credentials: %v", f.Name, f.Err))
		}
	}
	if upstream != nil {
		judge("upstream", upstream, plan.NewUpstream)
	}
	for i := range masters {
		judge(fmt.Sprintf("masters[%d]", i), &masters[i], i == plan.Replaced)
	}
	if len(refused) > 0 {
		return refused
	}
	return nil
}

// apply puts a configuration in force that nothing speaks against.
func (p *Proxy) apply(next *config.Config, upstream *endpoint.Endpoint, masters []endpoint.Endpoint, now time.Time) {
	coming, leaving := next.MaxQuarantine, max(next.MaxQuarantine, next.RestartDelay)
	was := p.current.Load().Router.Rules
	before := p.current.Load().Router.Era
	p.current.Replace(func(old config.Settings) config.Settings {
		return *config.NewSettings(next, upstream, masters, old.Router.WithRules(next.Locks, now, coming, leaving))
	})
	// Only now is it certain that no longer lock is taken that would not be known:
	// one that is under way hears that its key has moved (unlessMoved).
	leaving = longestLock(p.locker.Status(), next)
	p.current.Replace(func(old config.Settings) config.Settings {
		if old.Router.Era != before {
			old.Router = old.Router.LeavingFor(time.Now().Add(leaving))
		}
		return old
	})
	p.locks.scripts.bound(int(next.Limits.Scripts))
	p.server.applyUsers(p.current.Load().Users, next.Locks, was)
	p.level.Set(logLevels[next.Log.Level])
	p.survey.Soon()
	if p.current.Load().Router.Era != before {
		p.log.Warn("keys have moved with the lock rules; give every proxy the same rules before they can be used again", "moved", cmp.Or(strings.Join(p.movingKeys(), "; "), "all can be used at once"))
	}
}

// longestLock is how long a lock on the masters may still live, up to the cap.
// Where no quorum tells what it granted, that is the cap.
func longestLock(status redlock.Status, cfg *config.Config) time.Duration {
	if !status.Ready() {
		return cfg.MaxQuarantine
	}
	longest := cfg.RestartDelay
	for _, master := range status.Masters {
		longest = max(longest, min(master.Longest, cfg.MaxQuarantine))
	}
	return longest
}
