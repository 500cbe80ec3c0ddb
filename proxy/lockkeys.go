package proxy

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// Commands on several lock keys that are one question for each key: DEL,
// UNLINK, EXISTS, TOUCH and MGET.

// concurrentKeys bounds how many keys of one command are asked about at once.
const concurrentKeys = 32

// keyCount is a key and how often the command names it.
type keyCount struct {
	key   []byte
	times int64
}

// distinctKeys are the lock keys of a command without repetitions, in order,
// and for each argument of the route that is a lock key which of them it is.
func distinctKeys(call lockCall) (distinct []keyCount, which []int) {
	var index map[string]int
	for i, at := range call.route.Keys {
		if !call.route.Lock[i] {
			continue
		}
		key := call.args[at]
		if index == nil && len(call.route.Keys) > 1 {
			index = make(map[string]int, len(call.route.Keys))
		}
		n, known := index[string(key)]
		if !known {
			n = len(distinct)
			distinct = append(distinct, keyCount{key: key})
			if index != nil {
				index[string(key)] = n
			}
		}
		distinct[n].times++
		which = append(which, n)
	}
	return distinct, which
}

// onlyKey is the key of a command that has no other, nil for all others.
func onlyKey(call lockCall) []byte {
	if len(call.route.Keys) != 1 || !call.route.Lock[0] {
		return nil
	}
	return call.args[call.route.Keys[0]]
}

// lockKeys are the lock keys of a command without repetitions, in order. What
// a support probe writes is nothing that a vote goes by: it lives for 1 ms.
// Nobody may write to the list.
func lockKeys(call lockCall) [][]byte {
	if key := onlyKey(call); key != nil && string(key) != route.SupportProbe {
		at := call.route.Keys[0]
		return call.args[at : at+1 : at+1]
	}
	distinct, _ := distinctKeys(call)
	keys := make([][]byte, 0, len(distinct))
	for _, d := range distinct {
		if string(d.key) != route.SupportProbe {
			keys = append(keys, d.key)
		}
	}
	return keys
}

// askEach puts one question for each key, several at a time, and returns when
// all are answered, in the keys' order.
func askEach(keys []keyCount, ask func(key []byte) redlock.Outcome) []redlock.Outcome {
	outcomes := make([]redlock.Outcome, len(keys))
	if len(keys) == 1 {
		outcomes[0] = ask(keys[0].key)
		return outcomes
	}
	var (
		next    atomic.Int64
		workers sync.WaitGroup
		defect  atomic.Pointer[any]
	)
	for range min(len(keys), concurrentKeys) {
		workers.Go(func() {
			// A panic has to end the session that asked, not the process.
			defer func() {
				if r := recover(); r != nil {
					defect.Store(&r)
				}
			}()
			for i := next.Add(1) - 1; i < int64(len(keys)); i = next.Add(1) - 1 {
				outcomes[i] = ask(keys[i].key)
			}
		})
	}
	workers.Wait()
	if r := defect.Load(); r != nil {
		panic(*r)
	}
	return outcomes
}

// join makes one outcome of several: no quorum for any key is the answer,
// else the first error, else the sum of the keys' won questions as Number. An
// error that a value may be (MGET's wrong type) is taken out before.
func join(keys []keyCount, outcomes []redlock.Outcome, duplicatesCount bool) redlock.Outcome {
	if i := slices.IndexFunc(outcomes, func(o redlock.Outcome) bool { return o.Verdict == redlock.NoQuorum }); i >= 0 {
		return outcomes[i]
	}
	if i := slices.IndexFunc(outcomes, func(o redlock.Outcome) bool { return o.Err != "" }); i >= 0 {
		return outcomes[i]
	}
	joined := redlock.Outcome{Verdict: redlock.Lost}
	for i, o := range outcomes {
		if o.Verdict != redlock.Won {
			continue
		}
		joined.Verdict = redlock.Won
		if duplicatesCount {
			joined.Number += keys[i].times
		} else {
			joined.Number++
		}
	}
	return joined
}

// releaseKeys is DEL and UNLINK; a key named twice is deleted once.
func (p *lockPlane) releaseKeys(ctx context.Context, call lockCall) answer {
	if key := onlyKey(call); key != nil {
		o := p.locker.Release(ctx, redlock.ReleaseRequest{DB: call.db, Key: key})
		return answer{kind: redlock.KindRelease, outcome: o, reads: readsOne}
	}
	keys, _ := distinctKeys(call)
	outcomes := askEach(keys, func(key []byte) redlock.Outcome {
		return p.locker.Release(ctx, redlock.ReleaseRequest{DB: call.db, Key: key})
	})
	return answer{kind: redlock.KindRelease, outcome: join(keys, outcomes, false), reads: readsNumber}
}

// countKeys is EXISTS and TOUCH; a key named twice counts twice.
func (p *lockPlane) countKeys(ctx context.Context, call lockCall) answer {
	if key := onlyKey(call); key != nil {
		o := p.locker.Exists(ctx, call.db, key)
		return answer{kind: redlock.KindRead, outcome: o, reads: readsOne}
	}
	keys, _ := distinctKeys(call)
	outcomes := askEach(keys, func(key []byte) redlock.Outcome {
		return p.locker.Exists(ctx, call.db, key)
	})
	return answer{kind: redlock.KindRead, outcome: join(keys, outcomes, true), reads: readsNumber}
}

// getKeys is MGET: one value for each key named, nil for one that is absent
// or no string.
func (p *lockPlane) getKeys(ctx context.Context, call lockCall) answer {
	keys, which := distinctKeys(call)
	outcomes := askEach(keys, func(key []byte) redlock.Outcome {
		o := p.locker.Get(ctx, call.db, key)
		if o.Verdict != redlock.NoQuorum && o.Err != "" {
			o.Verdict, o.Err, o.Value = redlock.Lost, "", nil
		}
		return o
	})
	a := answer{kind: redlock.KindRead, outcome: join(keys, outcomes, true), reads: readsValues}
	if a.outcome.Verdict == redlock.NoQuorum {
		return a
	}
	for i, key := range keys {
		call.lastRead.remember(call.db, key.key, outcomes[i].Value)
	}
	a.values = make([][]byte, len(which))
	for i, n := range which {
		a.values[i] = outcomes[n].Value
	}
	return a
}
