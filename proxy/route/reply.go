package route

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// The decoders in this file take a reply to COMMAND as go-redis returns it: strings,
// int64 and []any. The tests' JSON gives the same shape, with float64 for numbers.

// decodeCommand reads one element of a reply to COMMAND: name, arity, flags, first
// key, last key and step. Servers from 7.0 on add ACL categories, tips, key
// specifications and subcommands.
func decodeCommand(element any) (*Spec, error) {
	fields, ok := element.([]any)
	if !ok || len(fields) < 6 {
		return nil, errors.New("an element that describes no command")
	}
	name, ok := fields[0].(string)
	if !ok || name == "" {
		return nil, errors.New("a command without a name")
	}
	malformed := fmt.Errorf("command %q: malformed", name)
	spec := &Spec{Name: strings.ToLower(name)}
	spec.traits = traitsOf(spec.Name)
	if spec.Arity, ok = number(fields[1]); !ok {
		return nil, malformed
	}
	flags, ok := fields[2].([]any)
	if !ok {
		return nil, malformed
	}
	for _, flag := range flags {
		word, _ := flag.(string)
		spec.flags |= flagNames[word]
	}
	if spec.keys, ok = decodeKeys(fields); !ok {
		return nil, malformed
	}
	spec.setOnlyKey()
	if len(fields) < 10 {
		return spec, nil
	}
	list, ok := fields[9].([]any)
	if !ok {
		return nil, malformed
	}
	for _, element := range list {
		sub, err := decodeCommand(element)
		if err != nil {
			return nil, err
		}
		spec.addSubcommand(sub)
	}
	return spec, nil
}

// decodeKeys reads a command's key specifications. If the server is too old to send
// any, it makes one of the first key, the last key and the step.
func decodeKeys(fields []any) (specs []keySpec, ok bool) {
	if len(fields) < 9 {
		first, firstOK := number(fields[3])
		last, lastOK := number(fields[4])
		step, stepOK := number(fields[5])
		if !firstOK || !lastOK || !stepOK {
			return nil, false
		}
		if first <= 0 {
			return nil, true
		}
		if last >= 0 {
			last = max(last-first, 0)
		}
		return []keySpec{{index: first, last: last, step: max(step, 1)}}, true
	}
	list, ok := fields[8].([]any)
	if !ok {
		return nil, false
	}
	for _, element := range list {
		spec, known, ok := decodeKeySpec(element)
		if !ok {
			return nil, false
		}
		if known {
			specs = append(specs, spec)
		}
	}
	return specs, true
}

// decodeKeySpec reads one key specification. It returns known as false if the
// specification finds no key: its type is unknown, or it describes an argument that
// is not a key. It returns ok as false if the specification is malformed.
func decodeKeySpec(element any) (spec keySpec, known, ok bool) {
	flags, _ := field(element, "flags").([]any)
	for _, flag := range flags {
		if flag == "not_key" || flag == "NOT_KEY" {
			return keySpec{}, false, true
		}
	}
	begin, find := field(element, "begin_search"), field(element, "find_keys")
	numbers := true
	integer := func(of any, name string) int {
		n, ok := number(field(field(of, "spec"), name))
		numbers = numbers && ok
		return n
	}
	switch field(begin, "type") {
	case "index":
		spec.index = integer(begin, "index")
		numbers = numbers && spec.index > 0
	case "keyword":
		word, ok := field(field(begin, "spec"), "keyword").(string)
		numbers = ok && word != ""
		spec.keyword = strings.ToUpper(word)
		spec.index = integer(begin, "startfrom")
	case "unknown":
		return keySpec{}, false, true
	default:
		return keySpec{}, false, false
	}
	switch field(find, "type") {
	case "range":
		spec.last = integer(find, "lastkey")
		spec.limit = integer(find, "limit")
		spec.step = integer(find, "keystep")
	case "keynum":
		spec.counted = true
		spec.countAt = integer(find, "keynumidx")
		spec.firstKey = integer(find, "firstkey")
		spec.step = integer(find, "keystep")
		numbers = numbers && spec.countAt >= 0 && spec.firstKey >= 0
	case "unknown":
		return keySpec{}, false, true
	default:
		return keySpec{}, false, false
	}
	spec.step = max(spec.step, 1)
	return spec, true, numbers
}

// field returns the value of name in a flat list of names and values, or nil if the
// list does not have it.
func field(pairs any, name string) any {
	list, _ := pairs.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		if list[i] == name {
			return list[i+1]
		}
	}
	return nil
}

// number returns a number of a reply. It returns false if v is no number or does not
// fit into 32 bits; so the sum of two numbers cannot overflow.
func number(v any) (int, bool) {
	switch n := v.(type) {
	case int64:
		return int(n), n >= math.MinInt32 && n <= math.MaxInt32
	case float64:
		return int(n), n >= math.MinInt32 && n <= math.MaxInt32
	}
	return 0, false
}
