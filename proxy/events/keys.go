package events

import (
	"hash/maphash"
	"sync"
	"time"
)

// The keys are in sets of a few slots, by their hash, so a key is found without a map.
const (
	keyShards  = 64
	setsShard  = 128 // sets of a shard
	slotsSet   = 8   // slots of a set
	mostKeys   = keyShards * setsShard * slotsSet
	keptMarks  = 4 // verdicts of a key
	forEverYet = 1<<63 - 1
)

type keyShard struct {
	sync.Mutex
	slots []slot // nil until the first key
}

// A slot is one key. The zero slot is free.
type slot struct {
	hash    uint64
	value   uint64 // the hash of the value with which the holder took the lock; 0: unknown
	holder  int64  // the id of a client; 0: nobody took it here, or it was released here
	since   int64  // when it was taken here; 0: it was not, or it was released here
	until   int64  // the end of its TTL
	touched int64
	marks   [keptMarks]mark // a ring
	next    uint8           // the mark to overwrite
}

type mark struct {
	at     int64
	client int64 // an id; 0: unknown
	what   Verdict
}

// A KeyEvent is what a command meant for one key. The journal does not keep its slices.
type KeyEvent struct {
	DB      int
	Key     []byte
	Client  *Client // the sender; nil: unknown
	Verdict Verdict
	Value   []byte        // Granted: what the lock holds; nil: unknown
	TTL     time.Duration // Granted, Extended: 0: for ever
	At      time.Time
	Took    time.Duration // the command, until then
}

// Note remembers an event. It returns how long the client waited for a lock that is Granted, from its
// first try on, and how long a lock that is Released was held. It returns false if nobody knows, and for
// any other verdict. A hold ends with a release through this process: one that ends by its TTL, or is
// released through another process, has no end here.
func (j *Journal) Note(e KeyEvent) (lasted time.Duration, known bool) {
	hash, now := j.hash(e.DB, e.Key), j.at(e.At)
	began := now - int64(e.Took)
	switch e.Verdict {
	case Refused:
		j.refuse(hash, e)
		e.Client.tried(hash, false, began, now)
	case Granted:
		lasted, known = time.Duration(now-e.Client.tried(hash, true, began, now)), true
		if e.Client != nil {
			e.Client.granted.Add(1)
		}
	}
	by := j.clients.add(e.Client)
	s := &j.keys[hash%keyShards]
	s.Lock()
	defer s.Unlock()
	if s.slots == nil {
		s.slots = make([]slot, setsShard*slotsSet)
	}
	k := s.place(hash, now)
	if k.hash != hash || k.touched == 0 {
		*k = slot{hash: hash}
	}
	k.touched = now
	k.marks[k.next%keptMarks] = mark{now, by, e.Verdict}
	k.next = (k.next + 1) % keptMarks
	switch e.Verdict {
	case Granted:
		k.holder, k.since, k.until, k.value = by, now, end(now, e.TTL), 0
		if e.Value != nil {
			k.value = maphash.Bytes(j.values, e.Value)
		}
	case Extended:
		k.until = end(now, e.TTL)
	case Released:
		lasted, known = time.Duration(now-k.since), k.since != 0
		k.holder, k.since = 0, 0
	}
	return lasted, known
}

func end(now int64, ttl time.Duration) int64 {
	if ttl <= 0 || int64(ttl) > forEverYet-now {
		return forEverYet
	}
	return now + int64(ttl)
}

// set is the slots that a hash may be in. The caller holds the shard.
func (s *keyShard) set(hash uint64) []slot {
	if s.slots == nil {
		return nil
	}
	at := hash / keyShards % setsShard * slotsSet
	return s.slots[at : at+slotsSet]
}

// place is the slot of a hash, or else the one to overwrite.
func (s *keyShard) place(hash uint64, now int64) *slot {
	set := s.set(hash)
	worst := &set[0]
	for i := range set {
		k := &set[i]
		switch {
		case k.touched != 0 && k.hash == hash:
			return k
		case k.isHeld(now) != worst.isHeld(now):
			if worst.isHeld(now) {
				worst = k
			}
		case k.touched < worst.touched:
			worst = k
		}
	}
	return worst
}

func (k *slot) isHeld(now int64) bool { return k.holder != 0 && k.until > now }

// look returns what is known of a key: a copy, or the zero slot.
func (j *Journal) look(hash uint64) slot {
	s := &j.keys[hash%keyShards]
	s.Lock()
	defer s.Unlock()
	for _, k := range s.set(hash) {
		if k.touched != 0 && k.hash == hash {
			return k
		}
	}
	return slot{}
}

// A Holder is who took a lock here, and when.
type Holder struct {
	Client ClientInfo
	Since  time.Time
}

// Holder tells who took a key here. value is what the masters hold now, or nil if that is
// no string. It returns false if nobody did, or if the lock was taken elsewhere since.
func (j *Journal) Holder(db int, key, value []byte, now time.Time) (Holder, bool) {
	k := j.look(j.hash(db, key))
	known := k.value != 0 && value != nil
	if k.holder == 0 || known && k.value != maphash.Bytes(j.values, value) || !known && !k.isHeld(j.at(now)) {
		return Holder{}, false
	}
	return Holder{j.clients.info(k.holder), j.timeOf(k.since)}, true
}

// A Mark is one verdict on a key.
type Mark struct {
	At      time.Time
	Client  ClientInfo
	Verdict Verdict
}

// Verdicts are the last verdicts on a key, the newest first.
func (j *Journal) Verdicts(db int, key []byte) (list []Mark) {
	k := j.look(j.hash(db, key))
	for n := range keptMarks {
		if m := k.marks[(int(k.next)+2*keptMarks-1-n)%keptMarks]; m.at != 0 {
			list = append(list, Mark{j.timeOf(m.at), j.clients.info(m.client), m.what})
		}
	}
	return list
}
