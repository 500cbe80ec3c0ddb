package proxy

import (
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

// reloadPatience bounds a reload's requests to the servers. A reload that replaces a
// master writes to a majority of them.
const reloadPatience = 15 * time.Second

// Reload reads the configuration file again, as config.Load does. It applies the whole
// file or nothing of it. Reload logs and counts a failure, and returns it. Clients keep
// their connections:
//
//   - Rules and limits apply from each client's next command. Changed rules may move keys
//     to or from the lock masters. Commands on these keys are refused for a while
//     (moves.go in package route). So a reload that moves keys is refused without
//     moveKeys.
//   - Passwords apply from the next login. Clients that are logged in stay so. A user's
//     rights apply from the next command. Reload closes the connections of deleted users.
//     It also closes connections that listen to something their user may no longer hear.
//   - Another upstream, or other credentials for it, apply from a session's next upstream
//     connection. Open connections stay.
//   - Reload logs in to masters again if needed. One master may be replaced by another
//     server, one may be added at the end of the list, or the last one removed.
//     redlock.Locker says when that is safe.
//   - listen, reuse_port, admin, log.format, embedded servers, and the order of the masters cannot
//     change. Reload refuses a file that changes them.
//
// Reload is also refused if a new server does not answer, or if a server does not accept
// its new credentials.
//
// The report is for people. It is empty if the reload was refused.
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
		p.log.Error("configuration not reloaded, the old one stays active (deploy/INCIDENTS.md#a-reload-was-refused)", "reason", strings.ReplaceAll(err.Error(), "\n", "; "))
		p.journal.NoteReload("configuration not reloaded: " + err.Error())
		return "", err
	}
	p.metrics.ReloadApplied(shownOf(p.current.Load().Config, time.Now()))
	if len(changes) == 0 {
		changes = []string{"nothing"}
	}
	p.journal.NoteReload("configuration reloaded; changed: " + strings.Join(changes, "; "))
	p.log.Info("configuration reloaded", "file", p.current.Load().Source, "changed", strings.Join(changes, "; "))
	return strings.Join(append(append([]string{"configuration reloaded from " + p.current.Load().Source}, p.masters().Changes()...), p.movingKeys()...), "\n"), nil
}

// movingKeys describes the keys on which commands are refused because the lock rules
// changed, one line for each rule.
func (p *Proxy) movingKeys() []string {
	var lines []string
	for _, moving := range p.current.Load().Router.Moving(time.Now()) {
		lines = append(lines, describeMoving(moving))
	}
	return lines
}

// describeMoving writes one line about a rule whose keys have moved, like: commands on keys
// of "job:*" are answered TRYAGAIN until 2026-11-21T05:10:00Z.
func describeMoving(m route.MovingRule) string {
	return "commands on keys of " + config.DescribeCoverage(m.Rule) + " are answered TRYAGAIN until " + config.Timestamp(m.Until) + " (deploy/INCIDENTS.md#tryagain)"
}

// mayReload returns an error if a reload must stop early. Either the process ends, or ctx
// has: the caller has left, or the reload has taken too long.
func (p *Proxy) mayReload(ctx context.Context) error {
	switch {
	case p.draining.Load():
		return errors.New("the proxy is ending")
	case ctx.Err() != nil:
		return fmt.Errorf("the reload was aborted: %w", ctx.Err())
	}
	return nil
}

// reload makes every check that can fail before it changes anything. The changes that come
// last cannot fail.
func (p *Proxy) reload(ctx context.Context, moveKeys bool) (changes []string, err error) {
	old := p.current.Load()
	if old.Config.Source == config.DemoSource {
		return nil, errors.New("the process was started with -demo, so there is no configuration file to read again")
	}
	next, err := config.Load(old.Config.Source, config.Flags{Admin: old.Config.AdminFlag})
	if err != nil {
		return nil, err
	}
	plan, err := config.PlanReload(old.Config, next)
	if err != nil {
		return nil, err
	}
	answers := inspect.Ask(ctx, next)
	if err := p.mayReload(ctx); err != nil {
		return nil, err
	}
	if err := inspect.Refused(answers.Hazards()); err != nil {
		return nil, err
	}
	if err := refusedBy(plan, answers); err != nil {
		return nil, err
	}
	if !moveKeys {
		if err := p.refusedMove(next, time.Now()); err != nil {
			return nil, err
		}
	}
	upstreamEntry, masterEntries := p.endpoints(next)
	if err := p.locker.Reload(ctx, p.lockerConfig(next, masterEntries)); err != nil {
		return nil, err
	}
	p.apply(next, upstreamEntry, masterEntries, time.Now())
	p.monitor.Use(answers)
	return plan.Changes, nil
}

// refusedMove returns an error if the new rules move keys. It is for a reload without
// moveKeys. The error describes the consequences, so that an operator knows them before.
func (p *Proxy) refusedMove(next *config.Config, now time.Time) error {
	router := p.current.Load().Router
	if route.SameCoverage(router.Rules, next.Locks) {
		return nil
	}
	lines := []string{"the lock rules would move keys to or from the lock masters; this needs redlock-proxy -reload -move-keys"}
	for _, moving := range router.WithRules(next.Locks, now, next.MaxQuarantine, longestLock(p.locker.Status(), next)).Moving(now) {
		lines = append(lines, "with -move-keys "+describeMoving(moving))
	}
	if len(lines) == 1 {
		lines = append(lines, "with -move-keys all keys can be used at once, because nobody was granted a lock in their new place")
	}
	return errors.New(strings.Join(lines, "\n"))
}

// refusedBy returns the servers' problems that forbid the plan, or nil if there are none.
func refusedBy(plan config.Plan, answers inspect.Answers) error {
	next := answers.Config
	var refused config.Error
	judge := func(key string, f *inspect.Facts) {
		var answer redis.Error // the server answered; any other error is the network's
		switch {
		case f.Err == nil:
		case slices.Contains(plan.New, key):
			refused = append(refused, next.Problem(key, "%s cannot be used: %v", f.Name, f.Err))
		case slices.Contains(plan.Entered, key) && errors.As(f.Err, &answer):
			refused = append(refused, next.Problem(key, "%s does not accept the new credentials: %v", f.Name, f.Err))
		}
	}
	if answers.Upstream != nil {
		judge("upstream", answers.Upstream)
	}
	for i := range answers.Masters {
		judge(fmt.Sprintf("masters[%d]", i), &answers.Masters[i])
	}
	if len(refused) > 0 {
		return refused
	}
	return nil
}

// apply makes a checked configuration the active one. It cannot fail.
func (p *Proxy) apply(next *config.Config, upstream *endpoint.Endpoint, masters []endpoint.Endpoint, now time.Time) {
	coming, leaving := next.MaxQuarantine, max(next.MaxQuarantine, next.RestartDelay)
	was := p.current.Load()
	p.current.Replace(func(old config.Settings) config.Settings {
		return *config.NewSettings(next, upstream, masters, old.Router.WithRules(next.Locks, now, coming, leaving))
	})
	// From here on nobody can take a longer lock unnoticed: a lock command that is under way
	// is told that its key has moved (unlessMoved). So only now is the longest lock known.
	leaving = longestLock(p.locker.Status(), next)
	p.current.Replace(func(old config.Settings) config.Settings {
		if old.Router.Generation != was.Router.Generation {
			old.Router = old.Router.LeavingFor(time.Now().Add(leaving))
		}
		return old
	})
	p.scripts.SetLimits(int(next.Limits.Scripts), int(next.Limits.LockCommand))
	p.clients.Reloaded(p.current.Load())
	p.level.Set(next.Log.SlogLevel())
	if p.current.Load().Router.Generation != was.Router.Generation {
		if moving := p.movingKeys(); len(moving) > 0 {
			p.log.Warn("lock rules moved keys; give every proxy the same rules before these keys can be used again", "moved", strings.Join(moving, "; "))
		} else {
			p.log.Info("the lock rules changed, and no keys move: all can be used at once")
		}
	}
}

// longestLock returns the longest time that a lock on the masters may still live, at most
// max_quarantine. If no quorum votes, nobody knows the granted locks, and it is max_quarantine.
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
