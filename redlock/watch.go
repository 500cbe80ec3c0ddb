package redlock

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// A Watch remembers what each master showed of keys that a client watches, for
// the transaction that may follow. It holds nothing on the masters.
type Watch struct {
	db   int
	keys [][]byte

	mu     sync.Mutex
	images [][]effect.Image // by master; nil: it did not show its keys
	agreed []effect.Image   // one of those a quorum agrees on
}

// Watch looks at keys as WATCH does. Won: the Watch can guard a transaction.
// NoQuorum: no quorum of masters agrees on what the keys are.
func (l *Locker) Watch(ctx context.Context, db int, keys [][]byte) (w *Watch, o Outcome) {
	o = l.again(ctx, false, func() Outcome {
		w, o = l.watch(db, keys)
		return o
	})
	return w, o
}

func (l *Locker) watch(db int, keys [][]byte) (*Watch, Outcome) {
	w := &Watch{db: db, images: make([][]effect.Image, len(l.masters))}
	for _, key := range keys {
		w.keys = append(w.keys, bytes.Clone(key))
	}
	e := &effect.Examination{Keys: w.keys}
	b := hold(l, e.Append(nil), question[effect.Result]{
		kind:    KindRead,
		db:      db,
		replies: e.Replies(),
		parse: func(replies [][]byte) (effect.Result, error) {
			x, err := e.Parse(replies)
			if err == nil && (x.Failed || x.After == nil) {
				err = errUnable
			}
			return x, err
		},
		vote: func(effect.Result) Vote { return Granted },
		decide: func(answers []quorum.Answer[effect.Result], _ time.Duration) Verdict {
			_, t := quorum.Largest(answers, anySight, sameAfter)
			return t.Agree()
		},
		late: func(_ *ballot[effect.Result], i int, a quorum.Answer[effect.Result], _ Verdict) { w.see(i, a) },
	})
	for i, a := range b.answers {
		w.see(i, a)
	}
	x, t := quorum.Largest(b.answers, anySight, sameAfter)
	o := b.outcome()
	if t.Granted < o.Needed {
		o.Verdict = NoQuorum
		return nil, o
	}
	w.agreed = x.After
	return w, o
}

// Size is how many bytes the Watch holds now, roughly; a master that answers
// late adds to it.
func (w *Watch) Size() int {
	const overhead = 100 // of a key, and of an image
	size := 0
	for _, key := range w.keys {
		size += overhead + len(key)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, images := range w.images {
		for _, i := range images {
			size += overhead + len(i.Dump)
		}
	}
	return size
}

// Keys are the watched keys.
func (w *Watch) Keys() [][]byte { return w.keys }

func anySight(effect.Result) bool { return true }

func sameAfter(a, b effect.Result) bool {
	return slices.EqualFunc(a.After, b.After, effect.SameContent)
}

func (w *Watch) see(i int, a quorum.Answer[effect.Result]) {
	if !a.State.Heard() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.images[i] = a.Value.After
}

// guard is what goes in front of a transaction on one master: WATCH, and a
// script that tells whether all keys are as this master showed them. Nil: this
// master did not show what the quorum agreed on, and is not asked.
func (w *Watch) guard(master int) []byte {
	w.mu.Lock()
	images := w.images[master]
	w.mu.Unlock()
	if images == nil || !slices.EqualFunc(images, w.agreed, effect.SameContent) {
		return nil
	}
	frames := resp.AppendCommand(nil, append([][]byte{[]byte("WATCH")}, w.keys...)...)
	return effect.AppendGuard(frames, w.keys, images)
}

// guard is what a transaction's watches ask each master before it.
func (r *RunRequest) guard() *guard[effect.Result] {
	return &guard[effect.Result]{
		replies: guardReplies * len(r.Watches),
		frames: func(master int) []byte {
			var guards []byte
			for _, w := range r.Watches {
				guard := w.guard(master)
				if guard == nil {
					return nil
				}
				guards = append(guards, guard...)
			}
			return guards
		},
		read: func(replies [][]byte) (bool, effect.Result, error) {
			same, err := stillSame(replies)
			aborted := effect.Result{Aborted: true, Reply: []byte("*-1\r\n")}
			if r.RESP3 {
				aborted.Reply = []byte("_\r\n")
			}
			return same && err == nil, aborted, err
		},
	}
}

// guardReplies is how many replies the guard of one Watch makes.
const guardReplies = 2

// stillSame tells from the guards' replies whether all keys are as they were.
// It is an error that a guard did not say: then nothing may follow.
func stillSame(replies [][]byte) (same bool, err error) {
	same = true
	for guard := range slices.Chunk(replies, guardReplies) {
		n, ok := resp.ParseInteger(guard[1])
		if !resp.IsOK(guard[0]) || !ok {
			return false, errUnable
		}
		same = same && n == 1
	}
	return same, nil
}
