package marker

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"time"
)

// NewSetID returns the id of a set that begins now, in a quarantine. Zero means without a
// quarantine. The id begins with the time in seconds, for people. Then come the ms from that
// time to the end of the quarantine. The rest is the nonce.
func NewSetID(now time.Time, quarantine time.Duration, nonce uint64) string {
	began, lasts := now.Unix(), int64(0)
	if quarantine > 0 {
		lasts = now.Add(quarantine).UnixMilli() - began*1000
	}
	id := binary.BigEndian.AppendUint32(nil, uint32(began))
	id = binary.BigEndian.AppendUint32(id, uint32(min(lasts, math.MaxUint32)))
	return hex.EncodeToString(binary.BigEndian.AppendUint64(id, nonce))
}

const setIDLength = 16

// FirstQuarantine returns the end of the quarantine in which the set began, as its id says. It
// returns zero if the set began without one.
func FirstQuarantine(set string) time.Time {
	id, err := hex.DecodeString(set)
	if err != nil || len(id) != setIDLength || binary.BigEndian.Uint32(id[4:]) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint32(id))*1000 + int64(binary.BigEndian.Uint32(id[4:])))
}

// foundedAt returns when a set began, as its id says. It returns zero if the id does not say.
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
