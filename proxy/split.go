package proxy

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performSplit carries out a command whose keys are on both planes: both
// halves at once, joined into one reply. An error in either is the answer.
func (s *session) performSplit(name string, cmd wire.Command, to route.Route) {
	if !s.settle() || s.refusedAsRestricted(name) || !s.open() {
		return
	}
	s.tellCaching()
	upstreamHalf, lockHalf := splitKeys(cmd.Args, to)
	fromUpstream, ok := s.askWhile(resp.AppendCommand(nil, upstreamHalf...), func() {
		s.runOnLocks(lockHalf, lockRoute(to.Spec, len(lockHalf)))
	})
	if !ok {
		return
	}
	if name == "mget" {
		s.replyBytes(joinValues(fromUpstream, s.lockReply, to.Lock))
		return
	}
	s.replyBytes(joinCounts(fromUpstream, s.lockReply))
}

// splitKeys makes two commands of one, of which all arguments are keys.
func splitKeys(args [][]byte, to route.Route) (upstreamHalf, lockHalf [][]byte) {
	upstreamHalf, lockHalf = [][]byte{args[0]}, [][]byte{args[0]}
	for i, at := range to.Keys {
		if to.Lock[i] {
			lockHalf = append(lockHalf, args[at])
		} else {
			upstreamHalf = append(upstreamHalf, args[at])
		}
	}
	return upstreamHalf, lockHalf
}

// lockRoute is the route of a command of nothing but lock keys.
func lockRoute(spec *command.Spec, args int) route.Route {
	to := route.Route{Plane: route.Locks, Spec: spec}
	for at := 1; at < args; at++ {
		to.Keys = append(to.Keys, at)
		to.Lock = append(to.Lock, true)
	}
	return to
}

func joinCounts(fromUpstream, fromLocks []byte) []byte {
	if reply := errorOf(fromLocks, fromUpstream); reply != nil {
		return reply
	}
	first, ok1 := resp.ParseInteger(fromUpstream)
	second, ok2 := resp.ParseInteger(fromLocks)
	if !ok1 || !ok2 {
		return []byte(wire.ErrUpstreamReply)
	}
	return redcon.AppendInt(nil, first+second)
}

// joinValues puts two lists of values into the order of the keys; lock tells
// which list a key's value is from.
func joinValues(fromUpstream, fromLocks []byte, lock []bool) []byte {
	if reply := errorOf(fromLocks, fromUpstream); reply != nil {
		return reply
	}
	upstream, err1 := resp.Elements(fromUpstream)
	locks, err2 := resp.Elements(fromLocks)
	if err1 != nil || err2 != nil || len(upstream)+len(locks) != len(lock) {
		return []byte(wire.ErrUpstreamReply)
	}
	joined := redcon.AppendArray(make([]byte, 0, len(fromUpstream)+len(fromLocks)), len(lock))
	for _, isLock := range lock {
		from := &upstream
		if isLock {
			from = &locks
		}
		if len(*from) == 0 {
			return []byte(wire.ErrUpstreamReply)
		}
		joined = append(joined, (*from)[0]...)
		*from = (*from)[1:]
	}
	return joined
}

// errorOf is the first of the replies that is an error, nil if none is.
func errorOf(replies ...[]byte) []byte {
	for _, reply := range replies {
		if resp.IsError(reply) {
			return reply
		}
	}
	return nil
}
