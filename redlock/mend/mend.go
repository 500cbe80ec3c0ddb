package mend

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// LeastQuiet is the shortest time for which copies must not have changed.
const LeastQuiet = 2 * time.Second

// Quiet is the time between two looks. It is longer than any ballot of any process,
// without its retries.
func (m *Mender) Quiet() time.Duration {
	return max(LeastQuiet, 4*m.box.Masters.Limits().MasterTimeout)
}

// firstLook is the longest wait before the first look.
const firstLook = 50 * time.Millisecond

// mendTries is the number of looks after the first.
const mendTries = 3

// maxMended is the largest number of keys that are mended at a time.
const maxMended = 1 << 10

// Mender mends copies in the background. Any goroutine may use it.
type Mender struct {
	box     *ballot.Box
	loop    *loop.Loop
	log     *slog.Logger
	ctx     context.Context // ends all mending
	running sync.WaitGroup

	mu     sync.Mutex
	keys   map[lane.Key]bool // the keys whose copies are being mended
	closed bool
}

// New makes a Mender. When ctx ends, all mending ends soon. Then call Close.
func New(ctx context.Context, box *ballot.Box, log *slog.Logger) *Mender {
	return &Mender{box: box, loop: box.Masters.Loop(), log: log, ctx: ctx, keys: map[lane.Key]bool{}}
}

// Close lets no new mending begin, and returns when all mending has ended.
func (m *Mender) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.loop.Join(&m.running)
}

// Mend starts to mend the copies of a key, unless that is going on. It does not wait. After
// Close, or if too many keys are being mended, it does nothing.
func (m *Mender) Mend(db int, key string) {
	k := lane.Key{DB: db, Name: key}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.keys[k] || len(m.keys) >= maxMended {
		return
	}
	m.keys[k] = true
	m.loop.Spawn(&m.running, func() {
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.keys, k)
		}()
		stream.Contained(m.log, func() { m.mendCopies(k) })
	})
}

// mendCopies mends the copies of a key once they have not changed for long enough.
func (m *Mender) mendCopies(k lane.Key) {
	// Most copies differ only because a request for the lock is under way.
	m.loop.Wait(min(firstLook, m.box.Masters.Limits().MasterTimeout), m.ctx.Done())
	before := copies(Look(m.box, ballot.KindRead, k))
	for try, again := 0, true; try < mendTries && again && before.ill(); try++ {
		m.loop.Wait(m.Quiet(), m.ctx.Done())
		before, again = m.mendOnce(k, before)
	}
}

// mendOnce looks at the copies again and mends those that are as they were before. It
// has the turn, so no other request of this process creates one meanwhile. again says that
// another look may find more to do.
func (m *Mender) mendOnce(k lane.Key, before copies) (now copies, again bool) {
	turn, err := m.box.Lanes.Enter(m.ctx, k.DB, []string{k.Name}, lane.Queueing{Next: true})
	if err != nil {
		return nil, false
	}
	defer turn.Leave()
	now = Look(m.box, ballot.KindRead, k)
	r := now.remedy(before)
	if r.change != 0 {
		m.apply(k, r)
	}
	return now, r.again
}

// Look asks all masters what they hold under a key, and waits for all answers.
func Look(box *ballot.Box, kind ballot.Kind, k lane.Key) []quorum.Answer[effect.Image] {
	e := &effect.Examination{Keys: [][]byte{[]byte(k.Name)}, Bounded: true}
	var larger atomic.Bool
	look := func(most int64, large bool) []quorum.Answer[effect.Image] {
		return ballot.Poll(box, e.Append(nil, most), ballot.Question[effect.Image]{
			Kind:    kind,
			DB:      k.DB,
			Large:   large,
			Replies: e.Replies(),
			Parse: func(replies [][]byte) (effect.Image, error) {
				x, err := e.Parse(replies)
				if x.TooLarge {
					larger.Store(true)
				}
				return imageIn(x, err)
			},
			Vote:   func(i effect.Image) ballot.Vote { return ballot.VoteOf(i.There()) },
			Decide: quorum.Complete[effect.Image],
		}).Answers
	}
	if now := look(ballot.Small, false); !larger.Load() {
		return now
	}
	return look(box.Masters.Limits().MaxReply, true)
}

// imageIn is what an examination of one key showed, without a command.
func imageIn(x effect.Result, err error) (effect.Image, error) {
	switch {
	case err != nil:
		return effect.Image{}, err
	case x.After == nil: // without a command no other answer is a failure
		return effect.Image{}, ballot.ErrUnable
	}
	return x.After[0], nil
}

// apply changes copies as a remedy says. A master changes its copy only if that still is
// as it was seen, byte for byte and with its expiry, and only within a master timeout.
func (m *Mender) apply(k lane.Key, r remedy) {
	until := m.box.Masters.Limits().MasterTimeout.Milliseconds()
	ballot.Poll(m.box, nil, ballot.Question[bool]{
		Kind:    ballot.KindRelease,
		DB:      k.DB,
		Keys:    []string{k.Name},
		Creates: r.model.There(),
		Each: func(i int) []byte {
			if !r.change.Has(i) {
				return nil
			}
			seen, became := r.quiet[i], r.model
			became.Now = seen.Now // the same time is left, by that master's clock
			return effect.AppendReplace(nil, []byte(k.Name), became, seen, seen.Now+until)
		},
		Replies: 1,
		Parse:   ballot.ParseDone,
		Vote:    ballot.VoteOf,
		Decide:  quorum.Complete[bool],
	})
}
