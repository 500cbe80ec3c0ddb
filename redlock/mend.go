package redlock

import (
	"context"
	"sync"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// Where copies of a key differ, or too few masters have one for anybody to hold
// it, they would stay so for as long as they live: strays of requests that died,
// late grants of a lock that was released elsewhere, plain writes that crossed.
// Whoever meets them has them mended, in the background: the copies are looked at
// twice, far enough apart that no ballot of any process can have been under way all
// the time, and what has not changed is deleted (strays) or made equal.

// leastQuiet is for how long copies must not have changed, at least.
const leastQuiet = 2 * time.Second

// quiet is longer than any ballot of any process lasts, retries aside.
func (l *Locker) quiet() time.Duration { return max(leastQuiet, 4*l.settings().MasterTimeout) }

// maxMended bounds how many keys are mended at a time.
const maxMended = 1 << 10

// mendings are the keys whose copies are being mended.
type mendings struct {
	mu      sync.Mutex
	running map[lockKey]*mending
	closed  bool
}

// A mending is of one key. What it came to is read once done is closed.
type mending struct {
	done  chan struct{}
	quiet []effect.Image // by master, what has not changed; nil if the copies need not be mended
}

func newMendings() *mendings { return &mendings{running: map[lockKey]*mending{}} }

// close lets no more of them begin.
func (m *mendings) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// mend has the copies of a key mended. It does not wait, and returns nil where too
// much is being mended already.
func (l *Locker) mend(db int, key string) *mending {
	k := lockKey{db, key}
	all := l.mendings
	all.mu.Lock()
	defer all.mu.Unlock()
	if m := all.running[k]; m != nil {
		return m
	}
	if all.closed || len(all.running) >= maxMended {
		return nil
	}
	m := &mending{done: make(chan struct{})}
	all.running[k] = m
	l.running.Go(func() {
		defer close(m.done)
		defer func() {
			all.mu.Lock()
			defer all.mu.Unlock()
			delete(all.running, k)
		}()
		stream.Contained(l.log, func() { m.quiet = l.mendCopies(l.ctx, k) })
	})
	return m
}

// mended has the copies of a key mended and waits for that. It returns what each
// master showed that has not changed meanwhile; nil if they need not be mended.
func (l *Locker) mended(ctx context.Context, db int, key string) []effect.Image {
	return l.mend(db, key).wait(ctx)
}

func (m *mending) wait(ctx context.Context) []effect.Image {
	if m == nil {
		return nil
	}
	select {
	case <-m.done:
		return m.quiet
	case <-ctx.Done():
		return nil
	}
}

// split tells that a quorum answered, and not alike.
func split(o Outcome) bool { return o.Verdict == NoQuorum && o.Answered >= o.Needed }

// areMended has the copies of keys mended, waits for that, and tells whether any
// needed to be.
func (l *Locker) areMended(ctx context.Context, db int, keys [][]byte) (needed bool) {
	var all []*mending
	for _, key := range keys {
		all = append(all, l.mend(db, string(key)))
	}
	for _, m := range all {
		needed = m.wait(ctx) != nil || needed
	}
	return needed
}

// mendCopies returns what each master showed for long enough, if no copy has
// changed in that time. Whether it could be mended is another question.
func (l *Locker) mendCopies(ctx context.Context, k lockKey) []effect.Image {
	// Most of what differs does so because it is just being asked for.
	stream.Sleep(ctx, min(firstLook, l.settings().MasterTimeout))
	before := l.inspect(k)
	for try := 0; try < mendTries && before.ill(); try++ {
		stream.Sleep(ctx, l.quiet())
		now, quiet := l.mendOnce(ctx, k, before)
		if now == nil || now.areAll(quiet) {
			return quiet
		}
		before = now
	}
	return nil
}

// model is what all copies are to be: what a quorum has, or else what stands for
// all.
func (c copies) model() effect.Image {
	if most, t := quorum.Largest(c, effect.Image.There, effect.SameContent); t.Granted >= quorum.Size(len(c)) {
		return most
	}
	return c[quorum.Choose(c, effect.Image.There, effect.SameContent, effect.Image.Number)].Value
}

// firstLook is when copies are looked at first.
const firstLook = 50 * time.Millisecond

// mendTries is how often copies are looked at again that have changed.
const mendTries = 3

// mendOnce looks at the copies again and mends what is as it was before. While it
// does so nobody else of this process may create one.
func (l *Locker) mendOnce(ctx context.Context, k lockKey, before copies) (now copies, quiet []effect.Image) {
	pass, err := l.turns.take(ctx, k.db, true, k.key)
	if err != nil {
		return nil, nil
	}
	defer pass()
	now = l.inspect(k)
	quiet, all := now.unchangedSince(before)
	switch {
	case now.strays():
		l.overwrite(k, quiet, effect.Missing)
	case all:
		l.overwrite(k, quiet, now.model())
	}
	return now, quiet
}

// copies are what masters hold under a key at one moment.
type copies []quorum.Answer[effect.Image]

// inspect looks at all copies of a key.
func (l *Locker) inspect(k lockKey) copies {
	e := &effect.Examination{Keys: [][]byte{[]byte(k.key)}}
	return hold(l, e.Append(nil), question[effect.Image]{
		kind:    KindRead,
		db:      k.db,
		replies: e.Replies(),
		parse: func(replies [][]byte) (effect.Image, error) {
			x, err := e.Parse(replies)
			switch {
			case err != nil:
				return effect.Image{}, err
			case x.Failed || x.After == nil:
				return effect.Image{}, errUnable
			}
			return x.After[0], nil
		},
		vote:   func(i effect.Image) Vote { return voteOf(i.There()) },
		decide: whenAllAnswered(effect.Image.There),
	}).answers
}

// strays: fewer masters than a quorum hold anything, also if all did that gave no
// answer or may have forgotten it. So nobody holds the lock.
func (c copies) strays() bool {
	return c.any() && !quorum.Count(c, effect.Image.There).Possible()
}

// any tells whether a master showed a copy.
func (c copies) any() bool {
	for _, a := range c {
		if a.State.Heard() && a.Value.There() {
			return true
		}
	}
	return false
}

// ill tells whether the copies need to be mended, should they stay as they are.
func (c copies) ill() bool {
	if c.strays() {
		return true
	}
	for _, a := range c {
		for _, b := range c {
			if a.State.Heard() && b.State.Heard() && a.Value.There() && b.Value.There() && !effect.SameContent(a.Value, b.Value) {
				return true
			}
		}
	}
	return false
}

// unchangedSince are the copies that are as they were before; all, if that holds
// for each of a set in which every master may vote.
func (c copies) unchangedSince(before copies) (same []effect.Image, all bool) {
	same, all = make([]effect.Image, len(c)), true
	for i, a := range c {
		if a.State.Heard() && before[i].State.Heard() && a.Value.UnchangedSince(before[i].Value) {
			same[i] = a.Value
		}
		all = all && a.State == quorum.Answered && before[i].State == quorum.Answered && a.Value.UnchangedSince(before[i].Value)
	}
	return same, all
}

// areAll tells whether there are no other copies than these.
func (c copies) areAll(quiet []effect.Image) bool {
	for i, a := range c {
		if a.State.Heard() && a.Value.There() && !quiet[i].There() {
			return false
		}
	}
	return true
}

// overwrite makes copies what model is: absent, or that of one master. Each is
// changed only where it still is as it was seen, to the byte and with its expiry,
// and at once or not at all.
func (l *Locker) overwrite(k lockKey, seen []effect.Image, model effect.Image) {
	until := l.settings().MasterTimeout.Milliseconds()
	hold(l, nil, question[bool]{
		kind:    KindRelease,
		db:      k.db,
		keys:    []string{k.key},
		creates: model.There(),
		each: func(i int) []byte {
			if !seen[i].There() || model.There() && effect.SameContent(seen[i], model) {
				return nil
			}
			became := model
			became.Now = seen[i].Now // the same time is left, by its own clock
			return effect.AppendReplace(nil, []byte(k.key), became, seen[i], seen[i].Now+until)
		},
		replies: 1,
		parse:   parseDone,
		vote:    voteOf,
		decide:  whenAllAnswered(isGranted),
	})
}

// whenAllAnswered decides nothing but that all have been heard.
func whenAllAnswered[A any](grants func(A) bool) func([]quorum.Answer[A], time.Duration) Verdict {
	return func(answers []quorum.Answer[A], _ time.Duration) Verdict {
		if quorum.Count(answers, grants).Pending() > 0 {
			return Pending
		}
		return Won
	}
}
