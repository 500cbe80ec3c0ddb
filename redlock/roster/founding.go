package roster

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock/quorum"
)

// Which set of masters there is: one that exists is taken over, or a new one
// begins.

// adopt takes over the set that exists: the one most masters belong to, once a
// quorum was reached. A tie, such as two halves of different sets, needs the
// operator. A set that a quorum belongs to takes the place of one that these
// masters have forgotten: it began in quarantine.
func (r *Roster) adopt(now time.Time) {
	reached, counts := 0, map[string]int{}
	for i := range r.masters {
		s := r.sights[Place{i, 0}]
		if s == nil || !s.read {
			continue
		}
		reached++
		if s.present() && s.marker.Members == r.masters && s.marker.Member == i+1 {
			counts[s.marker.Set]++
		}
	}
	best, tie := "", false
	for set, n := range counts {
		switch {
		case best == "" || n > counts[best]:
			best, tie = set, false
		case n == counts[best]:
			tie = true
		}
	}
	switch {
	case best == "" || best == r.set:
		return
	case r.set != "" && counts[best] < quorum.Size(r.masters):
		return
	case tie:
		r.reason = "the lock masters belong to different sets: " + r.describe()
		return
	case reached < quorum.Size(r.masters):
		r.reason = fmt.Sprintf("%d of %d lock masters were reached, %d are needed: %s", reached, r.masters, quorum.Size(r.masters), r.describe())
		return
	}
	if r.set != "" {
		before := r.set
		r.tell(Notice{Grave: true, Text: "the lock masters have forgotten their set and belong to another now, which began in quarantine", Fields: []any{"set", best, "before", before}})
		r.fresh = false // that was said of the masters before they forgot
		r.epoch, r.joined = 0, nil
		r.recalls = false
		clear(r.met)
		clear(r.blank)
	}
	r.set, r.reason = best, ""
	for _, s := range r.sights {
		if s.present() && s.marker.Set == r.set {
			r.learn(s, now)
		}
	}
	r.changed()
}

// found begins a new set. All masters must have been reached, and none may have
// a marker. A new set cannot be told from one that forgot everything, by
// restarts or by FLUSHALL, so it begins in quarantine, unless the operator says
// that no lock can be held yet. The first master decides between processes that
// try at the same moment.
func (r *Roster) found(now time.Time, limits Limits) []Write {
	var waits []string
	runs := map[string]int{}
	for i := range r.masters {
		s := r.sights[Place{i, 0}]
		switch {
		case s == nil || !s.read:
			waits = append(waits, r.names(i)+" has not been reached")
		case !s.isRecent(now):
			waits = append(waits, r.names(i)+" has not answered lately")
		case s.problem != "":
			waits = append(waits, r.names(i)+": "+s.problem)
		case s.Replica:
			waits = append(waits, r.names(i)+": "+IsReplica)
		case !s.absent():
			waits = append(waits, r.names(i)+" "+r.belonging(i, s))
		}
		if s != nil && s.read && s.run != "" {
			if other, twice := runs[s.run]; twice {
				waits = append(waits, fmt.Sprintf("%s and %s are one and the same server", r.names(other), r.names(i)))
			}
			runs[s.run] = i
		}
	}
	clear(r.blank)
	if len(waits) > 0 {
		r.reason = "a new set of lock masters begins only when all of them have been reached and none has a marker: " + strings.Join(waits, "; ")
		return nil
	}
	for i := range r.masters {
		r.blank[i] = true
	}
	r.reason = "a new set of lock masters is being formed"
	r.witnessed = true
	m := Write{Place: Place{0, 0}, Marker: r.marker(Place{0, 0}, "", 0, now)}
	r.begin(&m, limits)
	r.nonce++
	m.Marker.Set = newSetID(now, m.Marker.Quarantine, r.nonce)
	return []Write{m}
}

func (r *Roster) describe() string {
	var words []string
	for i := range r.masters {
		s := r.sights[Place{i, 0}]
		if s == nil || !s.read {
			words = append(words, r.names(i)+" has not been reached")
		} else {
			words = append(words, r.names(i)+" "+r.belonging(i, s))
		}
	}
	return strings.Join(words, "; ")
}

func (r *Roster) belonging(i int, s *sight) string {
	switch {
	case s.broken:
		return "has a key " + MarkerKey + " that is no marker"
	case s.text == "":
		return "has no marker"
	case s.marker.Members != r.masters || s.marker.Member != i+1:
		return fmt.Sprintf("is number %d of %d of set %s, and configured as number %d of %d", s.marker.Member, s.marker.Members, s.marker.Set, i+1, r.masters)
	}
	return "belongs to set " + s.marker.Set
}

// newSetID is the id of a set that begins now, in a quarantine; zero: in none. It
// begins with the time in seconds, for people, and how many ms later the quarantine
// ends. The rest is the nonce.
func newSetID(now time.Time, quarantine time.Duration, nonce uint64) string {
	began, lasts := now.Unix(), int64(0)
	if quarantine > 0 {
		lasts = now.Add(quarantine).UnixMilli() - began*1000
	}
	id := binary.BigEndian.AppendUint32(nil, uint32(began))
	id = binary.BigEndian.AppendUint32(id, uint32(min(lasts, math.MaxUint32)))
	return hex.EncodeToString(binary.BigEndian.AppendUint64(id, nonce))
}

const setIDLength = 16

// firstQuarantine is when the quarantine ends that a set began in, to the
// knowledge of its id; zero: it began in none.
func firstQuarantine(set string) time.Time {
	id, err := hex.DecodeString(set)
	if err != nil || len(id) != setIDLength || binary.BigEndian.Uint32(id[4:]) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint32(id))*1000 + int64(binary.BigEndian.Uint32(id[4:])))
}

// firstSlack is by how much quarantines that began with their set may end apart.
const firstSlack = 2 * time.Second

// isUnused tells whether all masters are in the quarantine that the set began in,
// so that no lock has been granted in it. One that began later ends later: the
// first may have been ended before its time, and locks been granted since.
func (r *Roster) isUnused(now time.Time) bool {
	end := firstQuarantine(r.set)
	if !now.Before(end) {
		return false
	}
	for i := range r.masters {
		s := r.sights[Place{i, 0}]
		if s == nil || !s.connected || !s.present() || s.marker.Set != r.set || s.marker.Run != s.run {
			return false
		}
		if s.marker.Since != 0 && (s.told.State != Quarantined || s.told.Until.Sub(end).Abs() > firstSlack) {
			return false
		}
	}
	return true
}

// NewUntil is when locks can be granted in a set that is in its
// first quarantine; zero: it is not.
func (r *Roster) NewUntil(now time.Time) time.Time {
	needed := quorum.Size(r.masters) - r.certified(0)
	if needed <= 0 || !now.Before(firstQuarantine(r.set)) {
		return time.Time{}
	}
	var ends []time.Time
	for i := range r.masters {
		if s := r.sights[Place{i, 0}]; s != nil && s.told.State == Quarantined {
			ends = append(ends, s.told.Until)
		}
	}
	if len(ends) < needed {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return shownUntil(ends[needed-1], now)
}

// NewSetNotice is what people should know of masters that form a new set.
func NewSetNotice(until time.Time) string {
	return "new set of masters: locks can be granted from " + until.UTC().Format(time.RFC3339) +
		"; start once with -new if no lock can be held on them yet"
}

// tellNewSet logs that once.
func (r *Roster) tellNewSet(now time.Time) {
	if until := r.NewUntil(now); !until.IsZero() && r.newTold != r.set {
		r.newTold = r.set
		r.warn(NewSetNotice(until), "set", r.set)
	}
}

// foundedAt is when a set began, to the knowledge of its id; zero: it does not say.
func foundedAt(set string, now time.Time) time.Time {
	id, err := hex.DecodeString(set)
	if err != nil || len(id) != setIDLength {
		return time.Time{}
	}
	began := time.Unix(int64(binary.BigEndian.Uint32(id)), 0)
	if began.Year() < 2026 || began.After(now.Add(24*time.Hour)) {
		return time.Time{}
	}
	return began
}
