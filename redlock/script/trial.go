package script

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// contents says what a key holds.
type contents uint8

const (
	nothing contents = iota
	ownersValue
	anotherString
	noString
	allContents
)

// A trial follows a script to its end for one content of its key. It becomes uncertain
// at the first step whose result is unknown, such as a comparison of two arguments.
type trial struct {
	held    contents // what the key held at the start
	holds   contents // what it holds now
	highest *[2]int  // see Release

	key       word // the key that the script reads; index 0: none so far
	owner     word // the argument that the key's value was compared with; index 0: none so far
	locals    []local
	depth     int
	ended     bool
	answer    value
	deleted   bool
	uncertain bool
}

type local struct {
	name string
	value
}

// maxNesting bounds conditions inside conditions and brackets inside brackets.
const maxNesting = 30

// doubt makes the trial uncertain, unless the script has ended: then the rest is not
// executed.
func (t *trial) doubt() value {
	t.uncertain = t.uncertain || !t.ended
	return value{}
}

func (t *trial) end(answer value) {
	if !t.ended {
		t.ended, t.answer = true, answer
	}
}

// deeper enters one level of nesting. The returned function leaves it.
func (t *trial) deeper() func() {
	if t.depth++; t.depth > maxNesting {
		t.doubt()
	}
	return func() { t.depth-- }
}

func (t *trial) run(block []ast.Stmt) {
	defer t.deeper()()
	visible := len(t.locals)
	for _, s := range block {
		if t.ended || t.uncertain {
			break
		}
		t.do(s)
	}
	t.locals = t.locals[:visible]
}

func (t *trial) do(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		t.declare(s.Names, t.all(s.Exprs))
	case *ast.IfStmt:
		if t.eval(s.Condition).truth() {
			t.run(s.Then)
		} else {
			t.run(s.Else)
		}
	case *ast.FuncCallStmt:
		t.eval(s.Expr)
	case *ast.ReturnStmt:
		values := t.all(s.Exprs)
		switch len(values) {
		case 0:
			t.end(value{kind: kindNil})
		case 1:
			t.end(values[0])
		default:
			t.doubt()
		}
	default:
		t.doubt()
	}
}

func (t *trial) declare(names []string, values []value) {
	for i, name := range names {
		switch name {
		case "redis", "server", "KEYS", "ARGV", "type":
			t.doubt() // the name would no longer mean what the server gives it
		}
		v := value{kind: kindNil}
		if i < len(values) {
			v = values[i]
		}
		t.locals = append(t.locals, local{name, v})
	}
}

func (t *trial) all(exprs []ast.Expr) []value {
	values := make([]value, len(exprs))
	for i, e := range exprs {
		values[i] = t.eval(e)
	}
	return values
}

func (t *trial) eval(e ast.Expr) value {
	defer t.deeper()()
	if t.ended || t.uncertain {
		return value{}
	}
	switch e := e.(type) {
	case *ast.NilExpr:
		return value{kind: kindNil}
	case *ast.TrueExpr:
		return truth(true)
	case *ast.FalseExpr:
		return truth(false)
	case *ast.NumberExpr:
		return t.number(e)
	case *ast.UnaryMinusOpExpr:
		if n, ok := e.Expr.(*ast.NumberExpr); ok {
			return integer(-t.number(n).number)
		}
	case *ast.StringExpr:
		return t.plain(e.Value)
	case *ast.IdentExpr:
		return t.variable(e.Value)
	case *ast.AttrGetExpr:
		return t.element(e)
	case *ast.UnaryNotOpExpr:
		return truth(!t.eval(e.Expr).truth())
	case *ast.LogicalOpExpr:
		if left := t.eval(e.Lhs); left.truth() == (e.Operator == "or") {
			return left
		}
		return t.eval(e.Rhs)
	case *ast.RelationalOpExpr:
		left, right := t.eval(e.Lhs), t.eval(e.Rhs)
		switch e.Operator {
		case "==":
			return truth(t.equal(left, right))
		case "~=":
			return truth(!t.equal(left, right))
		}
	case *ast.TableExpr:
		return t.table(e)
	case *ast.FuncCallExpr:
		return t.call(e)
	}
	return t.doubt()
}

// number reads an integer that Lua's floating point numbers hold exactly.
func (t *trial) number(e *ast.NumberExpr) value {
	n, err := strconv.ParseUint(e.Value, 10, 63)
	if err != nil || len(e.Value) > 15 {
		return t.doubt()
	}
	return integer(int64(n))
}

// plain is a text that every Lua and every reply keeps as it is.
func (t *trial) plain(text string) value {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' {
			return t.doubt()
		}
	}
	return value{kind: kindText, text: text}
}

func (t *trial) variable(name string) value {
	for _, l := range slices.Backward(t.locals) {
		if l.name == name {
			return l.value
		}
	}
	return t.doubt() // a global
}

// maxIndex bounds the index into KEYS and ARGV.
const maxIndex = 1000

// element is an element of KEYS or ARGV, such as KEYS[1].
func (t *trial) element(e *ast.AttrGetExpr) value {
	list, isName := e.Object.(*ast.IdentExpr)
	index, isNumber := e.Key.(*ast.NumberExpr)
	if !isName || !isNumber || list.Value != "KEYS" && list.Value != "ARGV" {
		return t.doubt()
	}
	w := word{argv: list.Value == "ARGV", index: int(t.number(index).number)}
	if w.index < 1 || w.index > maxIndex {
		return t.doubt()
	}
	of := &t.highest[0]
	if w.argv {
		of = &t.highest[1]
	}
	*of = max(*of, w.index)
	return value{kind: kindArgument, word: w}
}

// table is {err = text} or {ok = text}: the tables that are replies.
func (t *trial) table(e *ast.TableExpr) value {
	if len(e.Fields) != 1 {
		return t.doubt()
	}
	key, isText := e.Fields[0].Key.(*ast.StringExpr)
	if !isText || key.Value != "err" && key.Value != "ok" {
		return t.doubt()
	}
	return t.says(key.Value == "err", t.eval(e.Fields[0].Value))
}

func (t *trial) says(err bool, text value) value {
	switch {
	case text.kind != kindText:
		return t.doubt()
	case err:
		return value{kind: kindError, text: strings.TrimPrefix(text.text, "-")}
	}
	return value{kind: kindStatus, text: text.text}
}

// call calls one of the few known functions.
func (t *trial) call(e *ast.FuncCallExpr) value {
	args := t.all(e.Args)
	switch f := e.Func.(type) {
	case *ast.IdentExpr:
		if f.Value == "type" && len(args) == 1 {
			return value{kind: kindText, text: args[0].typeName()}
		}
	case *ast.AttrGetExpr:
		of, isName := f.Object.(*ast.IdentExpr)
		member, isText := f.Key.(*ast.StringExpr)
		if !isName || !isText || of.Value != "redis" && of.Value != "server" {
			break
		}
		switch {
		case member.Value == "call" || member.Value == "pcall":
			return t.command(args, member.Value == "pcall")
		case member.Value == "error_reply" && len(args) == 1:
			return t.says(true, args[0])
		case member.Value == "status_reply" && len(args) == 1:
			return t.says(false, args[0])
		}
	}
	return t.doubt()
}

// equal compares as Lua does: values of different types differ.
func (t *trial) equal(a, b value) bool {
	if a.typeName() != b.typeName() {
		return false
	}
	if b.kind == kindContent {
		a, b = b, a
	}
	switch {
	case a.kind == kindNil:
		return true
	case a.typeName() == "boolean":
		return a.kind == b.kind
	case a.kind == kindNumber && b.kind == kindNumber:
		return a.number == b.number
	case a.kind == kindText && b.kind == kindText:
		return a.text == b.text
	case a.kind == kindArgument && b.kind == kindArgument && a.word == b.word:
		return true
	case a.kind == kindContent && b.kind == kindArgument && t.owns(b.word):
		return t.held == ownersValue
	}
	t.doubt()
	return false
}

// owns tells whether the argument is the one that the key's value is compared with.
func (t *trial) owns(w word) bool {
	if t.owner.index == 0 && w.argv {
		t.owner = w
	}
	return t.owner == w
}

// reply is the script's answer. It returns false for an error or an uncertain answer.
func (t *trial) reply() (answer, bool) {
	switch v := t.answer; v.kind {
	case kindUndefined, kindNil, kindFalse: // nothing returned is nil
		return answer{exact: null}, true
	case kindTrue:
		return answer{exact: integerReply(1)}, true
	case kindNumber:
		return answer{exact: integerReply(v.number)}, true
	case kindText:
		return answer{exact: bulk(v.text)}, true
	case kindStatus:
		return answer{exact: "+" + v.text + "\r\n"}, true
	case kindContent:
		return answer{owner: true}, t.held == ownersValue
	case kindArgument:
		return answer{owner: true}, v.word == t.owner
	}
	return answer{}, false
}

// spares tells whether the script changes nothing in this trial, in which the key does
// not hold the owner's value, and certainly replies otherwise than r does.
func (t *trial) spares(r *Release) bool {
	if t.deleted || t.key != r.key || t.owner.index != 0 && t.owner != r.owner {
		return false
	}
	switch t.answer.kind {
	case kindError:
		return true
	case kindContent: // another's value
		return r.deleted.owner || !r.deleted.isBulk()
	}
	other, certain := t.reply()
	switch {
	case !certain || other.owner:
		return false
	case r.deleted.owner:
		return !other.isBulk()
	}
	return other != r.deleted
}
