package command

import (
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// keySpec is one key specification of a command: where its search begins and
// how the keys lie from there.
type keySpec struct {
	// keyword begins the search behind the first such word (upper case),
	// looked for from index on, or, if index is negative, backwards from so
	// many before the end. Without a keyword the search begins at index.
	keyword string
	index   int

	// counted: the argument countAt behind the beginning is the number of
	// keys, and firstKey behind the beginning is the first. Otherwise the keys
	// reach to last behind the beginning, or, if last is negative, to so many
	// before the end, and of what is left only the limit-th part.
	counted  bool
	countAt  int
	firstKey int
	last     int
	limit    int

	step int // at least 1
}

// OnlyKey is the index of the key of a command that always has this one and,
// its arity being right, no other; 0 for all other commands. It is what makes
// routing the commonest commands cheap.
func (s *Spec) OnlyKey() int {
	if len(s.keys) != 1 || s.Is(byHand) {
		return 0
	}
	k := &s.keys[0]
	if k.keyword != "" || k.counted || k.last != 0 || k.index >= max(s.Arity, -s.Arity) {
		return 0
	}
	return k.index
}

// AppendKeys appends to dst the indexes of the arguments that are keys. exact
// is false if the arguments do not say where the keys are (a missing argument,
// a count that is none or too high); then dst gets every argument that could
// have been meant as one. Keys that only the server can know of (the patterns
// of SORT BY and GET) are in neither.
func (s *Spec) AppendKeys(dst []int, args [][]byte) (keys []int, exact bool) {
	exact = s.ArityOK(len(args))
	switch {
	case s.Is(Sort):
		return appendSortKeys(dst, args), exact
	case s.Is(Migrate):
		return appendMigrateKeys(dst, args), exact
	}
	for i := range s.keys {
		var ok bool
		dst, ok = s.keys[i].appendKeys(dst, args)
		exact = exact && ok
	}
	return dst, exact
}

func (k *keySpec) appendKeys(dst []int, args [][]byte) (keys []int, exact bool) {
	first := k.begin(args)
	if first == 0 {
		return dst, true // an option that is not there
	}
	exact = true
	last := first + k.last
	switch {
	case k.counted:
		at := first + k.countAt
		if at >= len(args) {
			return dst, false
		}
		count, ok := resp.ParseDecimal(args[at])
		first += k.firstKey
		if exact = ok && 0 <= count && count <= int64(len(args)); !exact {
			count = int64(len(args))
		}
		last = first + (int(count)-1)*k.step
	case k.last < 0 && k.limit > 1:
		last = first + (len(args)-first)/k.limit + k.last
	case k.last < 0:
		last = len(args) + k.last
	}
	for i := first; i <= last; i += k.step {
		if i >= len(args) {
			return dst, false
		}
		dst = append(dst, i)
	}
	return dst, exact
}

// begin is the index where the keys are looked for, 0 if the keyword is absent.
func (k *keySpec) begin(args [][]byte) int {
	if k.keyword == "" {
		return k.index
	}
	// As in Redis a keyword in the last place, with nothing behind it, is none.
	if k.index > 0 {
		for i := k.index; i < len(args)-1; i++ {
			if wire.IsWord(args[i], k.keyword) {
				return i + 1
			}
		}
		return 0
	}
	for i := min(len(args)+k.index, len(args)-1); i > 1; i-- {
		if wire.IsWord(args[i], k.keyword) {
			return i + 1
		}
	}
	return 0
}

// appendSortKeys: SORT key [BY pattern] [LIMIT offset count] [GET pattern ...]
// [ASC|DESC] [ALPHA] [STORE destination], the last STORE being the one that
// counts.
func appendSortKeys(dst []int, args [][]byte) []int {
	if len(args) < 2 {
		return dst
	}
	dst = append(dst, 1)
	store := 0
	for i := 2; i < len(args); i++ {
		switch {
		case wire.IsWord(args[i], "LIMIT"):
			i += 2
		case wire.IsWord(args[i], "BY"), wire.IsWord(args[i], "GET"):
			i++
		case wire.IsWord(args[i], "STORE") && i+1 < len(args):
			i++
			store = i
		}
	}
	if store > 0 {
		dst = append(dst, store)
	}
	return dst
}

// appendMigrateKeys: MIGRATE host port key|"" db timeout [COPY] [REPLACE]
// [AUTH password | AUTH2 user password] [KEYS key ...]. A password may be
// "KEYS", which is why the key specification of the table does not do.
func appendMigrateKeys(dst []int, args [][]byte) []int {
	if len(args) < 4 {
		return dst
	}
	for i := 6; i < len(args) && len(args[3]) == 0; i++ {
		switch {
		case wire.IsWord(args[i], "AUTH"):
			i++
		case wire.IsWord(args[i], "AUTH2"):
			i += 2
		case wire.IsWord(args[i], "KEYS"):
			for i++; i < len(args); i++ {
				dst = append(dst, i)
			}
			return dst
		}
	}
	return append(dst, 3)
}
