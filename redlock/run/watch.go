package run

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// A Watch remembers what each master showed of keys, for the request that may follow, such as a
// client's transaction. It keeps nothing on the masters.
type Watch struct {
	db   int
	keys [][]byte

	masters int // as many were asked

	mu     sync.Mutex
	images map[int][]effect.Image // by master; nil: it did not show its keys
	agreed []effect.Image         // the images that a quorum agrees on, as one master showed them; nil: there are none
}

// Watch looks at keys as WATCH does. If Won, the Watch can guard a transaction. If
// NoQuorum, no quorum of masters agrees on the keys' contents, and the Watch is nil.
func (u *Runner) Watch(ctx context.Context, db int, keys [][]byte) (w *Watch, o ballot.Outcome) {
	o = u.retry().Again(ctx, false, func() ballot.Outcome {
		w, o = u.watch(db, keys)
		return o
	})
	if o.Split() {
		u.mend(db, keys) // for the client's next attempt
	}
	if o.Verdict == ballot.NoQuorum {
		w = nil
	}
	return w, o
}

// watch is Watch with one look, or with another one in its turn if the first shows that the keys are
// large. It returns a Watch in any case.
func (u *Runner) watch(db int, keys [][]byte) (*Watch, ballot.Outcome) {
	w, o := u.look(db, keys, ballot.Small, false)
	if o.TooLong > 0 {
		w, o = u.look(db, keys, u.box.Masters.Limits().MaxReply, true)
	}
	return w, o
}

func (u *Runner) look(db int, keys [][]byte, most int64, large bool) (*Watch, ballot.Outcome) {
	w := &Watch{db: db, images: map[int][]effect.Image{}}
	for _, key := range keys {
		w.keys = append(w.keys, bytes.Clone(key))
	}
	e := &effect.Examination{Keys: w.keys, Bounded: true}
	b := ballot.Poll(u.box, e.Append(nil, most), ballot.Question[effect.Result]{
		Kind:    ballot.KindRead,
		DB:      db,
		Large:   large,
		Replies: e.Replies(),
		Parse: func(replies [][]byte) (effect.Result, error) {
			return shown(e.Parse(replies))
		},
		Vote: func(effect.Result) ballot.Vote { return ballot.Granted },
		Decide: func(answers []quorum.Answer[effect.Result], _ time.Duration) ballot.Verdict {
			_, t := quorum.Largest(answers, anyAnswer, sameAfter)
			return t.Agree()
		},
		Settler: ballot.SettleFunc[effect.Result](func(_ *ballot.Ballot[effect.Result], i int, a quorum.Answer[effect.Result], _ ballot.Verdict) {
			w.note(i, a)
		}),
	})
	w.masters = len(b.Answers)
	x, t := quorum.Largest(b.Answers, anyAnswer, sameAfter)
	o := b.Outcome()
	if t.Granted < o.Needed {
		o.Verdict = ballot.NoQuorum
		for _, a := range b.Answers {
			if isTooLarge(a) && !large {
				o.TooLong++ // equal copies may differ in size
			}
		}
		return w, o
	}
	if x.TooLarge {
		o.Verdict, o.TooLong, o.Answered = ballot.NoQuorum, o.TooLong+t.Granted, o.Answered-t.Granted
		return w, o
	}
	w.agreed = x.After
	return w, o
}

// shown is what a master answered to a look. A master that did not show its keys could not serve.
func shown(x effect.Result, err error) (effect.Result, error) {
	if err == nil && x.After == nil && !x.TooLarge {
		err = ballot.ErrUnable
	}
	return x, err
}

// looksAgain is how often runWatched looks again.
const looksAgain = 5

// runWatched runs a request behind a Watch on the keys that it deletes and its client does not watch.
// If they changed between the look and the run, as at the end of a TTL, it looks again, as long as no
// try deleted anything. It spares locks that the first look did not show.
func (u *Runner) runWatched(ctx context.Context, r Request) (o ballot.Outcome) {
	var first, w *Watch
	keys, theirs := r.Deletes, slices.Clip(r.Watches)
	for range 1 + looksAgain {
		looked := u.retry().Again(ctx, false, func() (looked ballot.Outcome) {
			if w, looked = u.watch(r.DB, keys); looked.Verdict == ballot.NoQuorum {
				o = looked
			}
			// rule: a transaction that deletes goes by its very first look, also if no quorum agreed
			first = cmp.Or(first, w)
			return looked
		})
		if looked.Verdict == ballot.NoQuorum || !w.showsNoOther(first) {
			return o
		}
		r.Watches = append(theirs, w)
		if o = u.runOnce(ctx, r); !o.Split() || r.gaveUp.Load() || ctx.Err() != nil {
			return o
		}
	}
	return o
}

// earlier is what is known of the earlier tries of a request.
type earlier struct {
	mu      sync.Mutex
	met     [][]effect.Image // what each master held when the first try came; nil: it did not say
	deleted map[int]bool     // the keys that a try which was not won deleted on some master
}

// meet keeps what the first ballot found.
func (e *earlier) meet(answers []quorum.Answer[effect.Result]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.met != nil {
		return
	}
	for _, a := range answers {
		e.met = append(e.met, a.Value.Before)
	}
}

// lost notes what a try that was not won deleted.
func (e *earlier) lost(x effect.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k := range x.After {
		if x.DeletedKey(k) {
			e.deleted[k] = true
		}
	}
}

// deletedKeys returns the positions of the keys that were deleted, in order.
func (e *earlier) deletedKeys() []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.deleted))
}

// mustSpare tells whether a key holds a later lock than those that the first try can have found.
func (e *earlier) mustSpare(k int, now effect.Image) bool {
	return now.There() && !isQueue(now) && !e.mayHaveHad(k, now)
}

// mayHaveHad tells whether a quorum of masters may have held this lock when the first try came.
func (e *earlier) mayHaveHad(k int, now effect.Image) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := quorum.Tally{Masters: len(e.met)}
	for _, images := range e.met {
		switch {
		case k >= len(images):
		case isSameLock(images[k], now):
			t.Granted++
		default:
			t.Refused++
		}
	}
	return t.Answered() >= quorum.Size(t.Masters) && t.Possible()
}

// isSameLock tells whether two images show one lock. The counts of a re-entrant lock may differ.
func isSameLock(a, b effect.Image) bool {
	holder := a.Holder()
	return effect.SameContent(a, b) || holder != nil && bytes.Equal(holder, b.Holder())
}

// isQueue tells whether a key is no lock, but lists those that wait for one, or wakes them.
func isQueue(i effect.Image) bool {
	kind := rdb.Read(i.Dump).Kind
	return kind == rdb.List || kind == rdb.SortedSet
}

// runAfterDeletion tries a request again that has deleted keys. That is put back, but another client
// may have taken the lock in between. If the request deletes whatever it finds, it would delete that
// lock, too. So this try goes behind a Watch on these keys, and only if they are gone, or hold what a
// quorum of masters may have held when the first try came. Queues may have changed.
func (u *Runner) runAfterDeletion(ctx context.Context, r Request) ballot.Outcome {
	deleted := r.earlier.deletedKeys()
	for _, k := range deleted {
		r.Deletes = append(r.Deletes, r.Keys[k])
	}
	w, o := u.watch(r.DB, r.Deletes)
	if o.Verdict == ballot.NoQuorum {
		return o
	}
	for i, k := range deleted {
		if r.earlier.mustSpare(k, w.agreed[i]) {
			o.Verdict = ballot.NoQuorum
			return o
		}
	}
	r.Watches = []*Watch{w}
	return u.runOnce(ctx, r)
}

// unwatched returns those of some keys that the client does not watch.
func (r *Request) unwatched(keys [][]byte) (all [][]byte) {
	for _, key := range keys {
		if !slices.ContainsFunc(r.Watches, func(w *Watch) bool { return has(w.keys, key) }) {
			all = append(all, key)
		}
	}
	return all
}

func has(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// showsNoOther tells whether each key is gone, or what a quorum may have held when another Watch
// looked.
func (w *Watch) showsNoOther(first *Watch) bool {
	first.mu.Lock()
	defer first.mu.Unlock()
	for i := range w.keys {
		others := 0
		for _, images := range first.images {
			if !effect.SameContent(images[i], w.agreed[i]) {
				others++
			}
		}
		held := quorum.Tally{Masters: first.masters, Refused: others}.Possible()
		if !w.agreed[i].Absent() && !held {
			return false
		}
	}
	return true
}

// Size is about the number of bytes that the Watch holds now. It grows when a master
// answers late.
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

// Keys returns the watched keys. The caller must not change them.
func (w *Watch) Keys() [][]byte { return w.keys }

func anyAnswer(effect.Result) bool { return true }

func sameAfter(a, b effect.Result) bool {
	return slices.EqualFunc(a.After, b.After, effect.SameContent)
}

func (w *Watch) note(i int, a quorum.Answer[effect.Result]) {
	if !a.State.Heard() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.images[i] = a.Value.After
}

// guard returns what precedes a transaction on one master: WATCH, and a script that
// tells whether all keys are as this master showed them. It returns nil if this master
// did not show what the quorum agreed on. Then the master is not asked.
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

// guard combines the guards of a transaction's watches.
func (r *Request) guard() *ballot.Guard[effect.Result] {
	return &ballot.Guard[effect.Result]{
		Replies: guardReplies * len(r.Watches),
		Frames: func(master int) []byte {
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
		Read: func(replies [][]byte) (bool, effect.Result, error) {
			same, err := stillSame(replies)
			aborted := effect.Result{Aborted: true, Reply: []byte("*-1\r\n")}
			if r.RESP3 {
				aborted.Reply = []byte("_\r\n")
			}
			if len(r.Deletes) > 0 {
				if theirs, _ := stillSame(replies[:len(replies)-guardReplies]); theirs {
					aborted.Reply = nil // the client does not watch what changed
				}
			}
			return same, aborted, err
		},
		Stopped: func(answers []quorum.Answer[effect.Result]) bool { return r.rule.Winner(answers).Aborted },
	}
}

// guardReplies is the number of replies to the guard of one Watch.
const guardReplies = 2

// stillSame tells from the guards' replies whether all keys are as they were. If a guard
// does not say, that is an error, and nothing may follow.
func stillSame(replies [][]byte) (same bool, err error) {
	same = true
	for guard := range slices.Chunk(replies, guardReplies) {
		n, ok := resp.ParseInteger(guard[1])
		if !resp.IsOK(guard[0]) || !ok {
			return false, ballot.ErrUnable
		}
		same = same && n == 1
	}
	return same, nil
}
