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

// Reload applies new limits and new ways to reach the same masters. It can also change one master: put another server
// in its place, add one at the end of the list, or remove the last one. The caller must not run two reloads at once. An
// error is for the operator. After an error nothing has changed, unless the error says that a change was begun.
//
// A change first makes its epoch known to a quorum of the other masters. So a process with the old list stops counting
// the old master. A new master begins in quarantine. Before it votes, every lock that was granted without it has ended,
// and the operator has given the new list to all processes.
func (s *Set) Reload(ctx context.Context, servers []Server, limits Limits) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	old := s.List().servers()
	i, err := changed(old, servers)
	switch {
	case err != nil:
		return err
	case i >= len(servers):
		if err := s.agree(ctx, roster.Change{Master: i}); err != nil {
			return fmt.Errorf("removing %s: %w", old[i].Name, err)
		}
	case i >= len(old):
		if err := s.replace(ctx, i, servers[i]); err != nil {
			return fmt.Errorf("adding %s: %w", servers[i].Name, err)
		}
	case i >= 0:
		if err := s.replace(ctx, i, servers[i]); err != nil {
			return fmt.Errorf("replacing %s by %s: %w", old[i].Name, servers[i].Name, err)
		}
	}
	for i, server := range servers {
		s.At(i).server.Store(&server)
		s.voters.step(roster.Listed{Master: i, Server: server.forRoster()}, time.Now())
	}
	s.voters.do(func(*roster.Roster) {
		list := s.List()
		s.list.Store(&List{list.masters, list.size, len(servers)})
	})
	s.limits.Store(&limits)
	s.tendAll(time.Now())
	return nil
}

// changed returns the one index at which two lists of masters differ, which is beyond the end of one of them if the other
// is longer. It returns -1 if there is none, and an error if there are several.
func changed(old, masters []Server) (int, error) {
	named := func(list []Server, name string) bool {
		return slices.ContainsFunc(list, func(m Server) bool { return m.Name == name })
	}
	const oneAtATime = "one lock master changes at a time: reload with one change first, and with the next when -reload or REDLOCK STATUS says that it may come"
	changes := -1
	if len(masters) != len(old) {
		changes = min(len(masters), len(old))
	}
	if len(masters) > len(old)+1 || len(masters)+1 < len(old) {
		return 0, errors.New(oneAtATime)
	}
	for i, m := range masters {
		switch {
		case m.Embedded != old[min(i, len(old)-1)].Embedded || len(old) != len(masters) && m.Embedded:
			return 0, errors.New("embedded lock masters cannot be replaced by servers, servers cannot be replaced by embedded ones, and the number of embedded ones cannot change")
		case i >= len(old) || m.Name == old[i].Name:
		case len(masters) > len(old):
			return 0, fmt.Errorf("a lock master is added at the end of the list, and %s stands where %s is: put the new one behind the present ones, and change nothing else", m.Name, old[i].Name)
		case len(masters) < len(old):
			return 0, fmt.Errorf("only the last lock master of the list can be removed, and %s stands where %s is: remove the last one first, and then replace %s by it", m.Name, old[i].Name, old[i].Name)
		case named(old, m.Name) || named(masters, old[i].Name):
			return 0, errors.New("the order of the lock masters cannot change: each has its number in the set")
		case changes >= 0:
			return 0, fmt.Errorf("%s and %s are both replaced, and %s", old[changes].Name, old[i].Name, oneAtATime)
		default:
			changes = i
		}
	}
	return changes, nil
}

// replace makes a server master i. That may be one more than before.
func (s *Set) replace(ctx context.Context, i int, server Server) error {
	if server.Embedded {
		return errors.New("an embedded master cannot be replaced")
	}
	if list := s.List(); i >= list.listed && i >= list.size && i < len(list.masters) && !list.At(i).hasLeft() {
		return fmt.Errorf("%s is still being removed from that place; wait until that is over", list.At(i).Name())
	}
	run, text, err := examine(ctx, server)
	if err != nil {
		return err
	}
	if err := s.agree(ctx, roster.Change{Master: i, Name: server.Name, Run: run, Marker: text}); err != nil {
		return err
	}
	m := s.At(i)
	m.leave()
	s.voters.step(roster.Listed{Master: i, Server: server.forRoster()}, time.Now())
	m.begin(server)
	s.open(m)
	s.log.Info("a lock master was changed; the new one votes when its quarantine is over", "master", server.Name, "number", i+1)
	return nil
}

// agree makes a change, and waits until a quorum of the other masters has it on record. The connections of a master
// that is removed stay until all debts are paid (tend).
func (s *Set) agree(ctx context.Context, c roster.Change) (err error) {
	var joined roster.Joined
	s.voters.do(func(r *roster.Roster) { joined, err = r.Propose(c, time.Now()) })
	if err != nil {
		return err
	}
	return s.agreed(ctx, c.Master, joined)
}

// examine asks a server that shall become a master what it is. It returns its run id and its marker.
func examine(ctx context.Context, server Server) (run, text string, err error) {
	self, err := stream.Connect(ctx, server.address(), stream.Handshake{})
	if err != nil {
		return "", "", err
	}
	defer self.Close()
	defer context.AfterFunc(ctx, func() { self.Close() })()
	if self.Problem != "" {
		return "", "", errors.New(self.Problem)
	}
	if readReplication(self.Info).Replica {
		return "", "", errors.New(roster.IsReplica)
	}
	text, err = readMarker(self)
	return self.RunID, text, err
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
func (s *Set) agreed(ctx context.Context, i int, j roster.Joined) error {
	for {
		var n, needed int
		var overtaken bool
		turned := s.voters.watch(func(r *roster.Roster) { n, needed, overtaken = r.Heard(i, j) })
		switch {
		case overtaken:
			return errors.New("another proxy is changing a master at the same time, and both changes are on record now: restart all proxies with one list that has both")
		case n >= needed:
			return nil
		}
		if s.Loop().Wait(roster.BeatPause/10, turned, ctx.Done()); ctx.Err() != nil {
			return fmt.Errorf("%d masters have recorded the change, and a majority of %d is needed; it was begun, so try again when more masters are reachable", n, needed)
		}
	}
}
