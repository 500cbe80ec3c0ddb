package redlock

import (
	"strings"
	"time"
)

// Commands that take elements out of a list or a sorted set: signals that wake
// a waiter, or the tokens of a semaphore. To take the last element deletes the
// key, but it releases nothing: it needs a quorum as an acquire does, and what
// too few masters gave is put back. Otherwise a waiter that tries twice while a
// push is still on its way to the masters takes the element from two of them the
// first time, from one the second, and then no quorum has it any more.

// takesElements tells whether the run is such a command.
func (r *RunRequest) takesElements() bool {
	if r.Transaction != nil || len(r.Args) == 0 {
		return false
	}
	switch strings.ToUpper(string(r.Args[0])) {
	case "LPOP", "RPOP", "LMPOP", "BLPOP", "BRPOP", "BLMPOP",
		"LMOVE", "RPOPLPUSH", "BLMOVE", "BRPOPLPUSH",
		"ZPOPMIN", "ZPOPMAX", "ZMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP", "SPOP":
		return true
	}
	return false
}

// putBack gives a master the elements back that it gave in vain, if nothing has
// come in their place since. That is done behind the command that took them or
// not at all: on a later connection they may be elements that somebody else has
// taken elsewhere meanwhile.
func (s *stream) putBack(key []byte, before, after image, now time.Time) {
	m := sending{frames: appendRestore(nil, key, before, after)}
	s.send(call{replies: 1, asker: askerFunc(func([][]byte, standing, error) {})}, m, now)
}
