package journal

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// MostSlow is the number of slow commands that are remembered.
const MostSlow = 128

// slowLog is a ring of the last slow commands.
type slowLog struct {
	sync.Mutex
	next int64 // the id of the next one
	ring []SlowCommand
}

// A SlowCommand is a lock command that took long.
type SlowCommand struct {
	ID     int64
	At     time.Time
	Took   time.Duration
	Client ClientInfo

	Command   string
	DB        int
	Key       string // its first key; empty: it may be a value, or there is none, or it is not shown
	Arguments int    // without the name
}

// Shown are the arguments that may be shown: the name and the key, and how many follow.
func (s SlowCommand) Shown() []string {
	args, more := []string{s.Command}, s.Arguments
	if s.Key != "" {
		args, more = append(args, s.Key), more-1
	}
	if more > 0 {
		args = append(args, "... ("+strconv.Itoa(more)+" more arguments)")
	}
	return args
}

// NoteSlow remembers a slow command of a client, which may be nil.
func (j *Journal) NoteSlow(entry SlowCommand, from *Client) {
	entry.Client = from.Info()
	entry.Key = strings.Clone(entry.Key[:min(len(entry.Key), longestKept)]) // a piece would keep the whole
	l := &j.slow
	l.Lock()
	defer l.Unlock()
	entry.ID = l.next
	l.next++
	l.ring = append(l.ring, entry)
	if len(l.ring) > MostSlow {
		l.ring = append(l.ring[:0], l.ring[1:]...)
	}
}

// Slow returns the last slow commands, the newest first, n at most.
func (j *Journal) Slow(n int) []SlowCommand {
	l := &j.slow
	l.Lock()
	defer l.Unlock()
	var list []SlowCommand
	for i := len(l.ring) - 1; i >= 0 && len(list) < n; i-- {
		list = append(list, l.ring[i])
	}
	return list
}

// SlowLen is the number of slow commands that Slow can return.
func (j *Journal) SlowLen() int {
	j.slow.Lock()
	defer j.slow.Unlock()
	return len(j.slow.ring)
}

// ForgetSlow forgets all slow commands. Ids go on.
func (j *Journal) ForgetSlow() {
	j.slow.Lock()
	defer j.slow.Unlock()
	j.slow.ring = nil
}
