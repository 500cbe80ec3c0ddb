package route

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// Halves splits a command in two. All arguments of the command must be keys. ofLocks is the route of the
// half for the masters.
func (to Route) Halves(args [][]byte) (upstreamHalf, lockHalf [][]byte, ofLocks Route) {
	upstreamHalf, lockHalf = [][]byte{args[0]}, [][]byte{args[0]}
	ofLocks = Route{Plane: Locks, Spec: to.Spec, Rule: to.Rule}
	for i, at := range to.Keys {
		if to.Lock[i] {
			ofLocks.Keys, ofLocks.Lock = append(ofLocks.Keys, len(lockHalf)), append(ofLocks.Lock, true)
			lockHalf = append(lockHalf, args[at])
		} else {
			upstreamHalf = append(upstreamHalf, args[at])
		}
	}
	return upstreamHalf, lockHalf, ofLocks
}

// JoinCounts returns the sum of two integer replies, or an error.
func JoinCounts(fromUpstream, fromLocks []byte) []byte {
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

// JoinValues merges the lists of values that both halves answer, in the order of the
// keys. If one of them is an error, it returns that.
func (to Route) JoinValues(fromUpstream, fromLocks []byte) []byte {
	if reply := errorOf(fromLocks, fromUpstream); reply != nil {
		return reply
	}
	upstream, err1 := resp.Elements(fromUpstream)
	locks, err2 := resp.Elements(fromLocks)
	if err1 != nil || err2 != nil || len(upstream)+len(locks) != len(to.Lock) {
		return []byte(wire.ErrUpstreamReply)
	}
	joined := redcon.AppendArray(make([]byte, 0, len(fromUpstream)+len(fromLocks)), len(to.Lock))
	for _, isLock := range to.Lock {
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

// errorOf returns the first reply that is an error, or nil.
func errorOf(replies ...[]byte) []byte {
	for _, reply := range replies {
		if resp.IsError(reply) {
			return reply
		}
	}
	return nil
}
