package master

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// Reload applies new limits and new ways to reach the same masters. It can also replace
// one master by another server. The caller must not run two reloads at once. An error is
// for the operator. After an error nothing has changed, unless the error says that a
// replacement was begun.
//
// A replacement first makes its epoch known to a quorum of the remaining masters. So a
// process with the old list stops counting the old master. The new master begins in
// quarantine. Before it votes, every lock that the old master helped to win has ended.
func (s *Set) Reload(ctx context.Context, servers []Server, limits Limits) error {
	var old []Server
	for _, m := range s.List().masters {
		old = append(old, *m.server.Load())
	}
	replaced, err := replacement(old, servers)
	if err != nil {
		return err
	}
	if replaced >= 0 {
		if err := s.replace(ctx, replaced, servers[replaced]); err != nil {
			return fmt.Errorf("replacing %s by %s: %w", old[replaced].Name, servers[replaced].Name, err)
		}
	}
	for i, server := range servers {
		s.At(i).server.Store(&server)
		s.voters.do(func(r *roster.Roster) { r.SetServer(i, server.forRoster()) })
	}
	s.limits.Store(&limits)
	return nil
}

// replacement returns the one index at which the names of two lists of masters differ. It
// returns -1 if there is none.
func replacement(old, masters []Server) (int, error) {
	if len(old) != len(masters) {
		return 0, fmt.Errorf("the number of lock masters cannot change from %d to %d: two quorums of different sets need not meet; build a new set instead", len(old), len(masters))
	}
	named := func(list []Server, name string) bool {
		return slices.ContainsFunc(list, func(m Server) bool { return m.Name == name })
	}
	replaced := -1
	for i, m := range masters {
		switch {
		case m.Embedded != old[i].Embedded:
			return 0, errors.New("embedded lock masters cannot be replaced by servers, and servers cannot be replaced by embedded ones")
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

func (s *Set) replace(ctx context.Context, i int, server Server) error {
	if server.Embedded {
		return errors.New("an embedded master cannot be replaced")
	}
	run, err := s.examine(ctx, i, server)
	if err != nil {
		return err
	}
	if err := ask(s.voters, func(r *roster.Roster) error { return r.Replaceable(i) }); err != nil {
		return err
	}
	joined := ask(s.voters, func(r *roster.Roster) roster.Joined { return r.Replace(i, server.Name, run) })
	if err := s.voters.agreed(ctx, i, joined); err != nil {
		return err
	}
	m := s.At(i)
	m.leave()
	s.voters.do(func(r *roster.Roster) { r.Left(i) })
	s.voters.do(func(r *roster.Roster) { r.SetServer(i, server.forRoster()) })
	m.begin(server)
	for _, db := range ask(s.voters, (*roster.Roster).Databases) {
		m.database(db)
	}
	s.log.Info("a lock master was replaced; the new one votes when its quarantine is over", "master", server.Name, "epoch", joined.Epoch)
	return nil
}

// examine asks a server that shall become master i what it is. It returns its run id.
func (s *Set) examine(ctx context.Context, i int, server Server) (run string, err error) {
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
	return self.RunID, ask(s.voters, func(r *roster.Roster) error { return r.Acceptable(i, self.RunID, text) })
}

func readMarker(c *stream.Connection) (string, error) {
	if _, err := c.Write(resp.AppendCommand(nil, "GET", marker.Key)); err != nil {
		return "", err
	}
	replies, err := c.Reader.Next(nil, 1)
	if err != nil {
		return "", err
	}
	defer c.Reader.Discard()
	text, ok := resp.ParseBulk(replies[0])
	if !ok && !resp.IsNil(replies[0]) {
		return "", fmt.Errorf("it answers GET %s with %q", marker.Key, resp.ErrorText(replies[0]))
	}
	return string(text), nil
}

// agreed waits until a quorum of the masters other than i knows the masters of the new
// epoch.
func (v *voters) agreed(ctx context.Context, i int, j roster.Joined) error {
	for {
		var n, needed int
		var overtaken bool
		turned := v.watch(func(r *roster.Roster) { n, needed, overtaken = r.Heard(i, j) })
		switch {
		case overtaken:
			return errors.New("another proxy is replacing a master at the same time, and both replacements are recorded now: give all proxies one list with both new servers; if a proxy refuses this list because too few masters of its old list vote, restart it with the list")
		case n >= needed:
			return nil
		}
		select {
		case <-turned:
		case <-time.After(roster.BeatPause / 10):
		case <-ctx.Done():
			return fmt.Errorf("%d masters have recorded the replacement, and a majority of %d is needed; the old master does not vote any more, so try again when more masters are reachable", n, needed)
		}
	}
}
