package route

import (
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// keySpec is one key specification of a command. It says at which argument the
// keys begin, and which arguments from there are keys.
type keySpec struct {
	// Without a keyword the keys begin at index. With one (in upper case) they
	// begin behind the first argument that is the keyword. The search for it goes
	// forwards from index. If index is negative, the search goes backwards from
	// index counted from the end.
	keyword string
	index   int

	// The positions below are relative to the beginning. If counted is true, the
	// argument at countAt is the number of keys, and the first key is at firstKey.
	// Otherwise the keys reach from the beginning to last. A negative last counts
	// from the end. Then only the first of limit equal parts of the remaining
	// arguments holds keys, if limit is above 1.
	counted  bool
	countAt  int
	firstKey int
	last     int
	limit    int

	step int // at least 1
}

// setOnlyKey finds out whether the command always has exactly one key, at the same place, whenever its arity is right,
// and its plane follows from that key alone.
func (s *Spec) setOnlyKey() {
	if len(s.keys) != 1 || s.Is(specialKeys) {
		return
	}
	if k := &s.keys[0]; k.keyword == "" && !k.counted && k.last == 0 && 0 < k.index && k.index < min(sharedKeys, max(s.Arity, -s.Arity)) {
		s.onlyKey = k.index
	}
}

// AppendKeys appends to dst the indexes of the arguments that are keys. It returns
// exact as false if the arguments do not say where the keys are: an argument is
// missing, or the count of keys is no number, negative or too high. Then it appends
// every argument that may have been meant as a key. It never finds the keys that
// only the server can know, those that the patterns of SORT BY and GET name.
func (s *Spec) AppendKeys(dst []int, args [][]byte) (keys []int, exact bool) {
	exact = s.ArityOK(len(args))
	switch {
	case s.Is(Sort):
		return appendSortKeys(dst, args), exact
	case s.Is(Migrate):
		return appendMigrateKeys(dst, args), exact
	case s.Is(Conditions):
		return appendConditionKeys(dst, args)
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
		return dst, true // the option is absent
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

// begin returns the index at which the keys begin, or 0 if the keyword is absent.
func (k *keySpec) begin(args [][]byte) int {
	if k.keyword == "" {
		return k.index
	}
	// As in Redis, the last argument never counts as the keyword.
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

// appendSortKeys appends the keys of SORT key [BY pattern] [LIMIT offset count]
// [GET pattern ...] [ASC|DESC] [ALPHA] [STORE destination]. Of several STORE
// options the last one counts.
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

// appendMigrateKeys appends the keys of MIGRATE host port key|"" db timeout [COPY]
// [REPLACE] [AUTH password | AUTH2 user password] [KEYS key ...]. The key
// specification of the table is not enough, because a password may be "KEYS".
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

// appendConditionKeys appends the keys of EXEC [IFEQ key value | IFNE key value | NX key |
// XX key ...], which Valkey has from 9.2 on. The arity in the table is that of older servers.
// From an unknown condition on, every argument may have been meant as a key.
func appendConditionKeys(dst []int, args [][]byte) (keys []int, exact bool) {
	for i := 1; i < len(args); i++ {
		words := 1 // the key, or the key and a value
		switch {
		case wire.IsWord(args[i], "IFEQ"), wire.IsWord(args[i], "IFNE"):
			words = 2
		case !wire.IsWord(args[i], "NX") && !wire.IsWord(args[i], "XX"):
			words = len(args)
		}
		if i+words >= len(args) {
			for ; i < len(args); i++ {
				dst = append(dst, i)
			}
			return dst, false
		}
		dst = append(dst, i+1)
		i += words
	}
	return dst, true
}
