package redlock

import (
	"strings"

	"redlock-proxy/redlock/resp"
)

// A word is one of a script's arguments, counted from 1 as Lua does.
type word struct {
	argv  bool // ARGV[index], else KEYS[index]
	index int
}

// A trial follows a script to its end, given what its key holds: the four
// cases of contents are all there are. It is bad as soon as something is not
// certain, such as how a comparison of two arguments comes out.
type trial struct {
	owner word // the argument that a value has to equal
	holds contents

	key        word // the key that the script looks at; index 0: it did not so far
	variables  []assigned
	ended      bool
	answer     luaValue
	deleted    bool
	companions []word // other keys it wrote: none is a lock
	bad        bool
}

// contents is what a key holds.
type contents uint8

const (
	holdsNothing contents = iota
	holdsOwner
	holdsAnother // another string
	holdsNoString
	allContents
)

type assigned struct {
	name string
	luaValue
}

// try follows a script to its end.
func (b luaBlock) try(owner word, holds contents) *trial {
	t := &trial{owner: owner, holds: holds}
	b.run(t)
	return t
}

// fail makes the trial bad, unless the script is at its end already and what
// follows is not executed.
func (t *trial) fail() luaValue {
	t.bad = t.bad || !t.ended
	return luaValue{}
}

func (t *trial) end(answer luaValue) {
	if !t.ended {
		t.ended, t.answer = true, answer
	}
}

func (b luaBlock) run(t *trial) {
	visible := len(t.variables)
	for _, s := range b {
		if t.ended || t.bad {
			break
		}
		s.run(t)
	}
	t.variables = t.variables[:visible]
}

func (d luaLocal) run(t *trial) {
	values := make([]luaValue, max(len(d.names), len(d.values)))
	for i, e := range d.values {
		values[i] = e.in(t)
	}
	for i, name := range d.names {
		if i >= len(d.values) {
			values[i] = luaValue{kind: valueNil}
		}
		t.variables = append(t.variables, assigned{name, values[i]})
	}
}

func (c luaIf) run(t *trial) {
	if c.when.in(t).truth() {
		c.then.run(t)
	} else {
		c.otherwise.run(t)
	}
}

func (r luaReturn) run(t *trial) {
	if r.of == nil {
		t.end(luaValue{kind: valueNil})
		return
	}
	t.end(r.of.in(t))
}

func (d luaDo) run(t *trial) { d.call.in(t) }

func (name luaVariable) in(t *trial) luaValue {
	for i := len(t.variables) - 1; i >= 0; i-- {
		if t.variables[i].name == string(name) {
			return t.variables[i].luaValue
		}
	}
	return t.fail() // a global
}

func (c luaConstant) in(*trial) luaValue { return c.luaValue }

func (n luaNot) in(t *trial) luaValue { return truth(!n.of.in(t).truth()) }

func (n luaType) in(t *trial) luaValue { return luaValue{kind: valueText, text: n.of.in(t).typeName()} }

func (j luaJunction) in(t *trial) luaValue {
	left := j.left.in(t)
	if left.truth() == j.or {
		return left
	}
	return j.right.in(t)
}

func (r luaReply) in(t *trial) luaValue {
	v := r.text.in(t)
	switch {
	case v.kind != valueText:
		return t.fail()
	case !r.err:
		return luaValue{kind: valueStatus, text: v.text}
	case resp.CannotServe([]byte("-" + v.text + "\r\n")):
		return t.fail() // it looks like a master that cannot serve
	}
	return luaValue{kind: valueError}
}

func (c luaComparison) in(t *trial) luaValue {
	left, right := c.left.in(t), c.right.in(t)
	switch c.operator {
	case "==":
		return truth(t.equal(left, right))
	case "~=":
		return truth(!t.equal(left, right))
	}
	if left.kind != valueNumber || right.kind != valueNumber {
		return t.fail()
	}
	switch a, b := left.number, right.number; c.operator {
	case "<":
		return truth(a < b)
	case ">":
		return truth(a > b)
	case "<=":
		return truth(a <= b)
	default:
		return truth(a >= b)
	}
}

func (t *trial) equal(a, b luaValue) bool {
	if a.typeName() != b.typeName() {
		return false
	}
	if b.kind == valueAnother {
		a, b = b, a
	}
	switch {
	case a.kind == valueNil:
		return true
	case a.typeName() == "boolean":
		return a.kind == b.kind
	case a.kind == valueNumber && b.kind == valueNumber:
		return a.number == b.number
	case a.kind == valueText && b.kind == valueText:
		return a.text == b.text
	case a.kind == valueWord && b.kind == valueWord && a.word == b.word:
		return true
	case a.kind == valueAnother && b.kind == valueWord && b.word == t.owner:
		return false
	}
	t.fail()
	return false
}

func (c *luaCommand) in(t *trial) luaValue {
	args := make([]luaValue, len(c.args))
	for i, e := range c.args {
		args[i] = e.in(t)
	}
	if t.ended || t.bad || len(args) == 0 {
		return t.fail()
	}
	name := strings.ToLower(c.name)
	if name == "publish" && len(args) == 2 && args[0].isString() && args[1].isString() {
		return luaValue{kind: valueSomeNumber}
	}
	key := args[0].word
	if args[0].kind != valueWord {
		return t.fail()
	}
	if t.key.index == 0 && (name == "get" || name == "exists") {
		t.key = key
	}
	if key != t.key {
		return t.accompany(name, key, args)
	}
	switch {
	case name == "get" && len(args) == 1:
		return t.get(c.caught)
	case name == "getdel" && len(args) == 1:
		v := t.get(c.caught)
		t.delete()
		return v
	case name == "exists" && len(args) == 1:
		return integer(t.there())
	case (name == "del" || name == "unlink") && len(args) == 1:
		n := t.there()
		t.delete()
		return integer(n)
	}
	return t.fail()
}
