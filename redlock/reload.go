package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// reloadPatience bounds how long a reload waits for masters to answer.
const reloadPatience = 5 * time.Second

// Reload takes over a new configuration while requests go on: patience,
// retries, drift, delays, how the same masters are reached, and one other
// master in place of one that there was. Log, Observer and New stay as they
// were. An error is for the operator; nothing has changed then, but for a
// replacement that was begun and says so.
//
// A replacement first makes the epoch in which it happens known to a quorum of
// the masters that stay, so that a process with the old list stops counting the
// old master. The new one begins in quarantine, and before it votes every lock
// that the old one helped to win has ended.
func (l *Locker) Reload(ctx context.Context, cfg Config) error {
	l.reloads.Lock()
	defer l.reloads.Unlock()
	ctx, cancel := context.WithTimeout(ctx, reloadPatience)
	defer cancel()
	old := l.settings()
	if cfg.MasterTimeout <= 0 {
		return errors.New("the master timeout must be above zero")
	}
	replaced, err := replacement(old.Masters, cfg.Masters)
	if err != nil {
		return err
	}
	if replaced >= 0 {
		if err := l.replace(ctx, replaced, cfg.Masters[replaced], cfg); err != nil {
			return fmt.Errorf("replacing %s by %s: %w", old.Masters[replaced].Name, cfg.Masters[replaced].Name, err)
		}
	}
	for i, m := range cfg.Masters {
		l.masters[i].server.Store(&m)
		l.voters.do(func(r *roster.Roster) { r.SetServer(i, m.forRoster()) })
	}
	cfg.Log, cfg.Observer, cfg.New = old.Log, old.Observer, old.New
	cfg.withDefaults()
	l.cfg.Store(&cfg)
	return nil
}

// replacement finds the one place at which two lists of masters differ, by
// their names; -1: at none.
func replacement(old, masters []Master) (int, error) {
	if len(old) != len(masters) {
		return 0, fmt.Errorf("the number of lock masters cannot change from %d to %d: two quorums of different sets need not meet; build a new set instead", len(old), len(masters))
	}
	named := func(list []Master, name string) bool {
		return slices.ContainsFunc(list, func(m Master) bool { return m.Name == name })
	}
	replaced := -1
	for i, m := range masters {
		switch {
		case m.Embedded != old[i].Embedded:
			return 0, errors.New("embedded lock masters cannot become servers, nor servers embedded ones")
		case m.Name == old[i].Name:
		case named(old, m.Name) || named(masters, old[i].Name):
			return 0, errors.New("the order of the lock masters cannot change: each has its number in the set")
		case replaced >= 0:
			return 0, fmt.Errorf("one lock master can be replaced at a time, not %s and %s", old[replaced].Name, old[i].Name)
		default:
			replaced = i
		}
	}
	return replaced, nil
}

func (l *Locker) replace(ctx context.Context, i int, server Master, cfg Config) error {
	if server.Embedded {
		return errors.New("an embedded master cannot be replaced")
	}
	run, err := l.examine(ctx, i, server)
	if err != nil {
		return err
	}
	if err := ask(l.voters, func(r *roster.Roster) error { return r.Replaceable(i) }); err != nil {
		return err
	}
	joined := ask(l.voters, func(r *roster.Roster) roster.Joined { return r.Advance(i, server.Name, run) })
	if err := l.voters.agreed(ctx, i, joined); err != nil {
		return err
	}
	m := l.masters[i]
	m.leave()
	l.voters.do(func(r *roster.Roster) { r.Left(i) })
	l.voters.do(func(r *roster.Roster) { r.SetServer(i, server.forRoster()) })
	m.begin(l.ctx, server)
	for _, db := range ask(l.voters, (*roster.Roster).Databases) {
		m.stream(db)
	}
	l.log.Info("a lock master was replaced; the new one votes when its quarantine is over", "master", server.Name, "epoch", joined.Epoch)
	return nil
}

// examine asks a server that is to be a master at place i what it is, and
// returns its run id.
func (l *Locker) examine(ctx context.Context, i int, server Master) (run string, err error) {
	self, err := stream.Connect(ctx, server.address(), stream.Handshake{})
	if err != nil {
		return "", err
	}
	defer self.Close()
	defer context.AfterFunc(ctx, func() { self.Close() })()
	if self.Problem != "" {
		return "", errors.New(self.Problem)
	}
	if readReplication(self.Info).Replica {
		return "", errors.New(roster.IsReplica)
	}
	text, err := readMarker(self)
	if err != nil {
		return "", err
	}
	return self.RunID, ask(l.voters, func(r *roster.Roster) error { return r.Acceptable(i, self.RunID, text) })
}

func readMarker(c *stream.Connection) (string, error) {
	if _, err := c.Write(resp.AppendCommand(nil, "GET", roster.MarkerKey)); err != nil {
		return "", err
	}
	replies, err := c.Reader.Next(nil, 1)
	if err != nil {
		return "", err
	}
	defer c.Reader.Discard()
	text, ok := resp.ParseBulk(replies[0])
	if !ok && !resp.IsNil(replies[0]) {
		return "", fmt.Errorf("it answers GET %s with %q", roster.MarkerKey, resp.ErrorText(replies[0]))
	}
	return string(text), nil
}

// agreed waits until a quorum of the masters other than i has heard who the
// masters are in an epoch.
func (v *voters) agreed(ctx context.Context, i int, j roster.Joined) error {
	for {
		var n, needed int
		var overtaken bool
		turned := v.watch(func(r *roster.Roster) { n, needed, overtaken = r.Heard(i, j) })
		switch {
		case overtaken:
			return errors.New("another proxy is replacing a master at the same time, and both replacements are on record now: give all proxies one list with both new servers; a proxy that refuses it, because with its old list too few masters vote, has to be restarted with it")
		case n >= needed:
			return nil
		}
		select {
		case <-turned:
		case <-time.After(roster.BeatPause / 10):
		case <-ctx.Done():
			return fmt.Errorf("%d masters have heard of it, and a majority of %d is needed; the old master does not vote any more, so try again when they can be reached", n, needed)
		}
	}
}
