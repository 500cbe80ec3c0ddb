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
// one master by another server, or change the number of masters: add servers at the end of
// the list, or remove the last ones. The caller must not run two reloads at once. An error
// is for the operator. After an error nothing has changed, unless the error says that a
// replacement was begun.
//
// A replacement first makes its epoch known to a quorum of the remaining masters. So a
// process with the old list stops counting the old master. The new master begins in
// quarantine. Before it votes, every lock that the old master helped to win has ended.
//
// Another number of masters is only begun. Status tells how far it has come.
func (s *Set) Reload(ctx context.Context, servers []Server, limits Limits) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	old := s.List().servers()
	replaced, err := replacement(old, servers)
	switch {
	case err != nil:
		return err
	case len(servers) != len(old):
		if err := s.resize(ctx, len(old), servers); err != nil {
			return err
		}
	case replaced >= 0:
		if err := s.replace(ctx, replaced, servers[replaced]); err != nil {
			return fmt.Errorf("replacing %s by %s: %w", old[replaced].Name, servers[replaced].Name, err)
		}
	default:
		s.voters.do((*roster.Roster).Keep)
	}
	for i, server := range servers {
		s.At(i).server.Store(&server)
		s.voters.do(func(r *roster.Roster) { r.SetServer(i, server.forRoster()) })
	}
	s.limits.Store(&limits)
	s.tendAll(time.Now())
	return nil
}

// resize makes the servers the list of this process, which has another number of masters now.
func (s *Set) resize(ctx context.Context, old int, servers []Server) error {
	runs := map[string]string{}
	for i := old; i < len(servers); i++ {
		run, err := s.examine(ctx, i, servers[i])
		switch other, twice := runs[run]; {
		case err != nil:
			return fmt.Errorf("adding %s: %w", servers[i].Name, err)
		case twice:
			return fmt.Errorf("adding %s: it is the same server as %s", servers[i].Name, other)
		}
		runs[run] = servers[i].Name
		if list := s.List(); i < len(list.masters) && !list.At(i).hasLeft() && list.At(i).Name() != servers[i].Name {
			return fmt.Errorf("adding %s: %s is still being removed from that place; wait until that is over", servers[i].Name, list.At(i).Name())
		}
	}
	return s.relist(servers)
}

// replacement returns the one index at which the names of two lists of masters of equal length
// differ. It returns -1 if there is none. The longer of two lists must begin with the shorter.
func replacement(old, masters []Server) (int, error) {
	named := func(list []Server, name string) bool {
		return slices.ContainsFunc(list, func(m Server) bool { return m.Name == name })
	}
	replaced := -1
	for i, m := range masters {
		switch {
		case m.Embedded != old[min(i, len(old)-1)].Embedded || len(old) != len(masters) && m.Embedded:
			return 0, errors.New("embedded lock masters cannot be replaced by servers, servers cannot be replaced by embedded ones, and the number of embedded ones cannot change")
		case i >= len(old) || m.Name == old[i].Name:
		case len(masters) > len(old):
			return 0, fmt.Errorf("lock masters are added at the end of the list, and %s stands where %s is: put the new ones behind the present ones, and change nothing else", m.Name, old[i].Name)
		case len(masters) < len(old):
			return 0, fmt.Errorf("only the last lock masters of the list can be removed, and %s stands where %s is: remove the last one first, and then replace %s by it", m.Name, old[i].Name, old[i].Name)
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
	s.open(m)
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
