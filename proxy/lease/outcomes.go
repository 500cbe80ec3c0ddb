package lease

import (
	"slices"
	"time"

	"redlock-proxy/redlock"
)

// Prolonged notes the outcome of a command that gives a lock another TTL. 0: it expires no
// more. Without a quorum, some masters may have done it all the same.
func (k *Keeper) Prolonged(o redlock.Outcome, db int, key []byte, ttl time.Duration) {
	if o.Verdict == redlock.NoQuorum {
		k.edit(o.Since, db, key, func(l *lease) { l.term.attempted(ttl, time.Now()) })
		return
	}
	k.change(o, db, key, func(l *lease) {
		l.term.prolonged(ttl, o.Since, k.Limits())
		k.schedule(l, time.Now())
	})
}

// Ended notes the outcome of a command that releases locks, or gives them other values. A
// lock that was taken after the command's last ballot began is another one, and stays. by
// is the client's. If there was no quorum, and it has a lock, it has given it up.
func (k *Keeper) Ended(o redlock.Outcome, db int, by *Holder, keys ...[]byte) {
	for _, key := range keys {
		if o.Verdict == redlock.NoQuorum {
			k.givenUp(o.Since, db, key, func(l *lease) bool { return l.holder == by })
		} else {
			k.change(o, db, key, k.remove)
		}
	}
}

// givenUp notes that a client has asked for the end of a lock, at some time, if it is the
// client's.
func (k *Keeper) givenUp(at time.Time, db int, key []byte, its func(*lease) bool) {
	k.edit(at, db, key, func(l *lease) {
		if its(l) {
			l.term.givenUp = true
			k.schedule(l, time.Now())
		}
	})
}

// Ran notes what an examined run did to its keys. A string that it created is a lock of
// holder's connection, or no lock if holder is nil. So is a hash that names its holder.
func (k *Keeper) Ran(o redlock.Outcome, db int, holder *Holder) {
	for _, e := range o.Effects {
		switch {
		case e.Change == redlock.KeyProlonged:
			k.Prolonged(o, db, e.Key, e.TTL)
		case e.Change == redlock.KeyReentered:
			k.change(o, db, e.Key, func(l *lease) {
				l.term.reentered(e.TTL, o.Since, k.Limits())
				k.schedule(l, time.Now())
			})
		case e.Change == redlock.KeyReplaced:
			k.change(o, db, e.Key, func(l *lease) {
				if !l.hash {
					k.remove(l)
					return
				}
				l.term.replaced(e.TTL, o.Since, k.Limits())
				k.schedule(l, time.Now())
			})
		case e.Change == redlock.KeyCreated && holder != nil && len(e.Holder) >= redlock.ShortValue:
			holder.took(db, e.Key, e.Holder, true, e.TTL, o.Since)
		case e.Change == redlock.KeyCreated && holder != nil:
			holder.Took(db, e.Key, e.Value, e.TTL, o.Since)
		default:
			k.Ended(o, db, nil, e.Key)
		}
	}
	for _, e := range o.Attempted {
		// The client named the value. A long one shows that it is the holder, on any connection.
		k.givenUp(o.Since, db, e.Key, func(l *lease) bool {
			return l.value == string(e.Value) && (l.holder == holder || len(e.Value) >= redlock.ShortValue)
		})
	}
}

// Deletions returns what a run of a client that begins now calls with each lock that it
// deleted without a quorum. That value is a master's. Only the request's words show that the
// client is the holder, on another connection. Deletions reads them now, and keeps none. It
// returns nil if there are no leases.
func (k *Keeper) Deletions(r *redlock.RunRequest, by *Holder) func(key, value []byte) {
	if !k.Any() {
		return nil
	}
	began, db, named := time.Now(), r.DB, k.named(r)
	return func(key, value []byte) {
		k.givenUp(began, db, key, func(l *lease) bool {
			return l.value == string(value) && (l.holder == by || slices.Contains(named, l))
		})
	}
}

// named returns the leases on the request's keys whose value is among its words, if it is long.
func (k *Keeper) named(r *redlock.RunRequest) (all []*lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range r.Keys {
		l := k.leases[place{r.DB, string(key)}]
		if l == nil || len(l.value) < redlock.ShortValue {
			continue
		}
		its := func(word []byte) bool { return string(word) == l.value }
		says := func(command [][]byte) bool { return slices.ContainsFunc(command, its) }
		if says(r.Args) || slices.ContainsFunc(r.Transaction, says) {
			all = append(all, l)
		}
	}
	return all
}

// change changes a key's lease after a command that was won.
func (k *Keeper) change(o redlock.Outcome, db int, key []byte, change func(*lease)) {
	if o.Verdict == redlock.Won && o.Err == "" {
		k.edit(o.Since, db, key, change)
	}
}

// edit changes a key's lease, if the lock had been taken before that time.
func (k *Keeper) edit(at time.Time, db int, key []byte, change func(*lease)) {
	if !k.Any() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.leases[place{db, string(key)}]; l != nil && !l.term.taken.After(at) {
		change(l)
	}
}
