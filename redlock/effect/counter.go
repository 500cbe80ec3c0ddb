package effect

import (
	"bytes"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// Highest unites two copies of counters: it has the higher number wherever they differ. Counters are the
// integer of a string, those of a hash's fields, and a sorted set's scores. It returns false if the copies
// differ in anything else, or if each is ahead somewhere and fields have TTLs, which would be lost.
func Highest(a, b Image) (Image, bool) {
	v, w := rdb.Read(a.Dump), rdb.Read(b.Dump)
	if v.Kind != w.Kind || v.Kind == rdb.Unknown || len(v.Items) != len(w.Items) {
		return a, false
	}
	behind, ahead := false, false // a somewhere
	for i, item := range v.Items {
		m, isNumber := number(v, i)
		n, isToo := number(w, i)
		switch {
		case !(isNumber && isToo):
			if !bytes.Equal(item, w.Items[i]) {
				return a, false
			}
		case m < n:
			behind, v.Items[i] = true, w.Items[i]
		case m > n:
			ahead = true
		}
	}
	for i, score := range v.Scores {
		behind, ahead = behind || score < w.Scores[i], ahead || score > w.Scores[i]
		v.Scores[i] = max(score, w.Scores[i])
	}
	switch {
	case !behind:
		return a, true
	case !ahead:
		return b, true
	}
	if rdb.HasFieldTTLs(a.Dump) || rdb.HasFieldTTLs(b.Dump) {
		return a, false
	}
	return Image{Dump: rdb.Dump(v), PTTL: a.PTTL, Now: a.Now}, true
}

// number is the integer of an item, if it may count something. The names of fields and members do not.
func number(v rdb.Value, i int) (int64, bool) {
	if v.Kind == rdb.String || v.Kind == rdb.Hash && i%2 == 1 {
		return resp.ParseDecimal(v.Items[i])
	}
	return 0, false
}
