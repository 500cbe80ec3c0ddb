package events

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"redlock-proxy/redlock"
)

// mostSlow is the number of slow commands that are remembered.
const mostSlow = 128

// commands are the lock commands of the last minute, and the last slow ones.
type commands struct {
	sync.Mutex
	total   Decided
	decided minute[Decided]

	next int64         // the id of the next slow one
	slow []SlowCommand // the oldest first
}

// Decided counts lock commands that took a lock, did not, or could not be decided.
type Decided struct{ Granted, Refused, Undecided int64 }

func (d *Decided) add(other Decided) {
	d.Granted += other.Granted
	d.Refused += other.Refused
	d.Undecided += other.Undecided
}

// NoteCommand counts a lock command.
func (j *Journal) NoteCommand(kind redlock.Kind, verdict redlock.Verdict, now time.Time) {
	var one Decided
	switch takes := kind == redlock.KindAcquire || kind == redlock.KindSwap; {
	case verdict == redlock.NoQuorum:
		one.Undecided = 1
	case takes && verdict == redlock.Won:
		one.Granted = 1
	case takes && verdict == redlock.Lost:
		one.Refused = 1
	default:
		return
	}
	c := &j.commands
	c.Lock()
	defer c.Unlock()
	c.total.add(one)
	c.decided.now(now).add(one)
}

// Commands returns how many lock commands were counted at all, and in each of the last seconds.
func (j *Journal) Commands(now time.Time) (total Decided, last [ShownSeconds]Decided) {
	j.commands.Lock()
	defer j.commands.Unlock()
	return j.commands.total, j.commands.decided.last(now)
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
	l := &j.commands
	l.Lock()
	defer l.Unlock()
	entry.ID = l.next
	l.next++
	l.slow = append(l.slow, entry)
	if len(l.slow) > mostSlow {
		l.slow = append(l.slow[:0], l.slow[1:]...)
	}
}

// Slow returns the last slow commands, the newest first, n at most.
func (j *Journal) Slow(n int) []SlowCommand {
	l := &j.commands
	l.Lock()
	defer l.Unlock()
	var list []SlowCommand
	for i := len(l.slow) - 1; i >= 0 && len(list) < n; i-- {
		list = append(list, l.slow[i])
	}
	return list
}

// ForgetSlow forgets all slow commands. Ids go on.
func (j *Journal) ForgetSlow() {
	j.commands.Lock()
	defer j.commands.Unlock()
	j.commands.slow = nil
}
