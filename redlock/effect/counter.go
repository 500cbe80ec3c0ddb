package effect

import (
	"bytes"
	"maps"
	"slices"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// A part is what a copy has of a hash's field, of a member, or of a string.
type part struct {
	value []byte
	score float64
}

// higher returns the higher one of two parts. It returns false if they differ and do not count.
func (p part) higher(q part) (part, bool) {
	m, isNumber := resp.ParseDecimal(p.value)
	n, isToo := resp.ParseDecimal(q.value)
	ok := isNumber && isToo || bytes.Equal(p.value, q.value)
	if m < n {
		p.value = q.value
	}
	p.score = max(p.score, q.score)
	return p, ok
}

// parts returns the parts of a value by their names. Lists have none, nor do Unknown values.
func parts(v rdb.Value) map[string]part {
	all := map[string]part{}
	for i, item := range v.Items {
		switch {
		case v.Kind == rdb.String:
			all[""] = part{value: item}
		case v.Kind == rdb.Set:
			all[string(item)] = part{}
		case v.Kind == rdb.SortedSet:
			all[string(item)] = part{score: v.Scores[i]}
		case v.Kind == rdb.Hash && i%2 == 0:
			all[string(item)] = part{value: v.Items[i+1]}
		}
	}
	return all
}

// Unite makes one copy of several that differ. It has the fields and members that a number of the copies
// have, and of each the highest number: a string's or a field's integer, or a score. all says that no copy
// has another field or member. Unite returns false if the copies differ in anything else, or have nothing in
// common, or if TTLs of fields would be lost.
func Unite(needed int, copies ...Image) (united Image, all, ok bool) {
	if !slices.ContainsFunc(copies, func(c Image) bool { return !SameContent(c, copies[0]) }) {
		return copies[0], true, true
	}
	kind, found := rdb.Read(copies[0].Dump).Kind, map[string][]part{}
	for _, c := range copies {
		v := rdb.Read(c.Dump)
		if v.Kind != kind {
			return Image{}, false, false
		}
		for name, p := range parts(v) {
			found[name] = append(found[name], p)
		}
	}
	u := rdb.Value{Kind: kind}
	all = true
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if kind != rdb.String && len(found[name]) < needed {
			all = false
			continue
		}
		highest := found[name][0]
		for _, p := range found[name][1:] {
			if highest, ok = highest.higher(p); !ok {
				return Image{}, false, false
			}
		}
		switch kind {
		case rdb.String:
			u.Items = append(u.Items, highest.value)
		case rdb.Hash:
			u.Items = append(u.Items, []byte(name), highest.value)
		default:
			u.Items, u.Scores = append(u.Items, []byte(name)), append(u.Scores, highest.score)
		}
	}
	united = Image{Dump: rdb.Dump(u), PTTL: copies[0].PTTL}
	if i := slices.IndexFunc(copies, func(c Image) bool { return SameContent(c, united) }); i >= 0 {
		return copies[i], all, true // its fields may have TTLs
	}
	expires := slices.ContainsFunc(copies, func(c Image) bool { return rdb.HasFieldTTLs(c.Dump) })
	return united, all, len(u.Items) > 0 && !expires
}
