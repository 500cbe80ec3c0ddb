package lock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// This file has the commands that ask one question for each of several lock keys:
// DEL, UNLINK, EXISTS, TOUCH and MGET.

// concurrentKeys bounds the number of questions of one command at a time.
const concurrentKeys = 32

// distinctKeys returns the lock keys of a command in order, without repetitions. which
// has, for each lock key of the route, its index in distinct.
func (c Command) distinctKeys() (distinct [][]byte, which []int) {
	index := make(map[string]int, len(c.Route.Keys))
	for i, at := range c.Route.Keys {
		if !c.Route.Lock[i] {
			continue
		}
		key := c.Args[at]
		n, known := index[string(key)]
		if !known {
			n = len(distinct)
			index[string(key)] = n
			distinct = append(distinct, key)
		}
		which = append(which, n)
	}
	return distinct, which
}

// namesKeys tells whether the command's first key is certainly a key. In a script that
// names no keys, it may be a value.
func (c Command) namesKeys() bool {
	if !c.Route.Spec.Is(route.Script) {
		return true
	}
	n, _ := resp.ParseDecimal(c.Args[2])
	return n > 0
}

// onlyKey is the command's one lock key, or nil if it has other keys.
func (c Command) onlyKey() []byte {
	if len(c.Route.Keys) != 1 || !c.Route.Lock[0] {
		return nil
	}
	return c.Args[c.Route.Keys[0]]
}

// Keys are the lock keys of a command in order, without repetitions. It leaves out the
// key of a support probe: that key lives for 1 ms, so no vote depends on it. The
// caller must not change the list.
func (c Command) Keys() [][]byte {
	if key := c.onlyKey(); key != nil && string(key) != route.SupportProbe {
		at := c.Route.Keys[0]
		return c.Args[at : at+1 : at+1]
	}
	keys, _ := c.distinctKeys()
	return slices.DeleteFunc(keys, func(key []byte) bool { return string(key) == route.SupportProbe })
}

// askEach asks one question for each key, several at a time. It returns all outcomes
// in the order of the keys.
func askEach(keys [][]byte, ask func(key []byte) redlock.Outcome) []redlock.Outcome {
	outcomes := make([]redlock.Outcome, len(keys))
	if len(keys) == 1 {
		outcomes[0] = ask(keys[0])
		return outcomes
	}
	var (
		next    atomic.Int64
		workers sync.WaitGroup
		defect  atomic.Pointer[any]
	)
	for range min(len(keys), concurrentKeys) {
		workers.Go(func() {
			// A panic must end the session that asked, not the process.
			defer func() {
				if r := recover(); r != nil {
					defect.Store(&r)
				}
			}()
			for i := next.Add(1) - 1; i < int64(len(keys)); i = next.Add(1) - 1 {
				outcomes[i] = ask(keys[i])
			}
		})
	}
	workers.Wait()
	if r := defect.Load(); r != nil {
		panic(*r)
	}
	return outcomes
}

// eachOf returns one outcome for each place where a key is named.
func eachOf(outcomes []redlock.Outcome, which []int) []redlock.Outcome {
	each := make([]redlock.Outcome, len(which))
	for i, n := range which {
		each[i] = outcomes[n]
	}
	return each
}

// join makes one outcome of several: the first NoQuorum, or else the first error.
// Otherwise Number is the number of outcomes that were won. getKeys removes MGET's
// errors of wrong type first.
func join(outcomes []redlock.Outcome) redlock.Outcome {
	if i := slices.IndexFunc(outcomes, func(o redlock.Outcome) bool { return o.Verdict == redlock.NoQuorum }); i >= 0 {
		return outcomes[i]
	}
	if i := slices.IndexFunc(outcomes, func(o redlock.Outcome) bool { return o.Err != "" }); i >= 0 {
		return outcomes[i]
	}
	joined := redlock.Outcome{Verdict: redlock.Lost}
	for _, o := range outcomes {
		if o.Verdict == redlock.Won {
			joined.Verdict = redlock.Won
			joined.Number++
		}
	}
	return joined
}

// releaseKeys carries out DEL and UNLINK. A key named twice is deleted once.
func (p *Plane) releaseKeys(ctx context.Context, call Command) answer {
	if call.onlyKey() != nil {
		return p.release(ctx, call, readsOne)
	}
	keys, _ := call.distinctKeys()
	db := call.DB // a closure over call would move it to the heap
	outcomes := askEach(keys, func(key []byte) redlock.Outcome {
		return p.Locker.Release(ctx, redlock.ReleaseRequest{DB: db, Key: key})
	})
	return answer{kind: redlock.KindRelease, outcome: join(outcomes), reads: readsNumber, each: outcomes}
}

// countKeys carries out EXISTS and TOUCH. A key named twice counts twice.
func (p *Plane) countKeys(ctx context.Context, call Command) answer {
	if key := call.onlyKey(); key != nil {
		o := p.Locker.Exists(ctx, call.DB, key)
		return answer{kind: redlock.KindRead, outcome: o, reads: readsOne}
	}
	keys, which := call.distinctKeys()
	db := call.DB
	outcomes := askEach(keys, func(key []byte) redlock.Outcome {
		return p.Locker.Exists(ctx, db, key)
	})
	return answer{kind: redlock.KindRead, outcome: join(eachOf(outcomes, which)), reads: readsNumber}
}

// getKeys carries out MGET. It has one value for each key named, nil for one that is
// absent or no string.
func (p *Plane) getKeys(ctx context.Context, call Command) answer {
	keys, which := call.distinctKeys()
	most, size := p.MaxReply(), atomic.Int64{}
	outcomes := askEach(keys, func(key []byte) redlock.Outcome {
		if size.Load() > most {
			return redlock.Outcome{}
		}
		o := p.Locker.Get(ctx, call.DB, key)
		size.Add(int64(len(o.Value)))
		if o.Verdict != redlock.NoQuorum && o.Err != "" {
			o.Verdict, o.Err, o.Value = redlock.Lost, "", nil
		}
		return o
	})
	if size.Load() > most {
		return rejection(redlock.KindRead, errorLongReply)
	}
	a := answer{kind: redlock.KindRead, outcome: join(outcomes), reads: readsValues}
	for _, o := range eachOf(outcomes, which) {
		a.values = append(a.values, o.Value)
	}
	return a
}
