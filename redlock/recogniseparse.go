package redlock

import (
	"slices"
	"strconv"
	"strings"
)

// maxRecognised bounds the scripts that are read: the real ones are short.
const maxRecognised = 4 << 10

// maxScriptWords bounds the index of a word.
const maxScriptWords = 1000

// maxLuaNesting bounds conditions inside conditions and brackets inside brackets.
const maxLuaNesting = 30

// parseScript reads a script; false means that there is something else in it.
// Words are the elements of KEYS and ARGV that it mentions.
func parseScript(tokens []luaToken) (script luaBlock, words []word, ok bool) {
	p := scriptParser{tokens: tokens}
	script = p.block()
	return script, p.words, !p.bad && len(p.tokens) == 0
}

// scriptParser goes on with nothing left to read once something was bad.
type scriptParser struct {
	tokens []luaToken // not read yet
	words  []word
	depth  int
	bad    bool
}

func (p *scriptParser) fail() {
	p.bad, p.tokens = true, nil
}

func (p *scriptParser) peek() luaToken {
	if len(p.tokens) == 0 {
		return luaToken{kind: luaSymbol}
	}
	return p.tokens[0]
}

func (p *scriptParser) next() luaToken {
	t := p.peek()
	if len(p.tokens) == 0 {
		p.fail()
	} else {
		p.tokens = p.tokens[1:]
	}
	return t
}

// takes reads the next token if it is this symbol or keyword.
func (p *scriptParser) takes(text string) bool {
	if t := p.peek(); len(p.tokens) == 0 || t.text != text || t.kind != luaSymbol && t.kind != luaName {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *scriptParser) want(text string) {
	if !p.takes(text) {
		p.fail()
	}
}

// deeper counts nesting; what it returns ends it.
func (p *scriptParser) deeper() func() {
	if p.depth++; p.depth > maxLuaNesting {
		p.fail()
	}
	return func() { p.depth-- }
}

func (p *scriptParser) block() luaBlock {
	defer p.deeper()()
	var b luaBlock
	for len(p.tokens) > 0 {
		switch t := p.peek(); {
		case t.kind == luaName && (t.text == "end" || t.text == "else" || t.text == "elseif"):
			return b
		case p.takes("local"):
			b = append(b, p.local())
		case p.takes("if"):
			b = append(b, p.condition())
		case p.takes("return"):
			b = append(b, p.returned())
			p.takes(";")
			return b // the caller wants the block's end now
		default:
			call, ok := p.operand().(*luaCommand)
			if !ok {
				p.fail()
			}
			b = append(b, luaDo{call})
		}
		p.takes(";")
	}
	return b
}

func (p *scriptParser) local() statement {
	var d luaLocal
	for {
		d.names = append(d.names, p.newName())
		if !p.takes(",") {
			break
		}
	}
	if p.takes("=") {
		d.values = p.list()
	}
	return d
}

// newName refuses names that the other words of the script then would not mean.
func (p *scriptParser) newName() string {
	t := p.next()
	if t.kind != luaName || t.text == "redis" || t.text == "server" || luaHarmless[t.text] {
		p.fail()
	}
	return t.text
}

func (p *scriptParser) list() []expression {
	list := []expression{p.expression()}
	for p.takes(",") {
		list = append(list, p.expression())
	}
	return list
}

func (p *scriptParser) condition() statement {
	defer p.deeper()()
	c := luaIf{when: p.expression()}
	p.want("then")
	c.then = p.block()
	switch {
	case p.takes("elseif"):
		c.otherwise = luaBlock{p.condition()}
		return c // which has read the end
	case p.takes("else"):
		c.otherwise = p.block()
	}
	p.want("end")
	return c
}

func (p *scriptParser) returned() statement {
	if t := p.peek(); len(p.tokens) == 0 || t.is(";") || t.kind == luaName && (t.text == "end" || t.text == "else" || t.text == "elseif") {
		return luaReturn{}
	}
	return luaReturn{p.expression()}
}

func (p *scriptParser) expression() expression {
	defer p.deeper()()
	left := p.both()
	for p.takes("or") {
		left = luaJunction{true, left, p.both()}
	}
	return left
}

func (p *scriptParser) both() expression {
	left := p.compared()
	for p.takes("and") {
		left = luaJunction{false, left, p.compared()}
	}
	return left
}

func (p *scriptParser) compared() expression {
	left := p.unary()
	for {
		t := p.peek()
		if t.kind != luaSymbol || !slices.Contains([]string{"==", "~=", "<", ">", "<=", ">="}, t.text) {
			return left
		}
		p.next()
		left = luaComparison{t.text, left, p.unary()}
	}
}

func (p *scriptParser) unary() expression {
	defer p.deeper()()
	switch {
	case p.takes("not"):
		return luaNot{p.unary()}
	case p.takes("-"):
		n := p.number()
		n.number = -n.number
		return luaConstant{n}
	}
	return p.operand()
}

// operand reads an expression without operators. What would go on after it, as
// an index or a call does, is none of this language.
func (p *scriptParser) operand() expression {
	e := p.atom()
	switch t := p.peek(); {
	case t.kind == luaPlain || t.kind == luaString:
		p.fail()
	case t.is("(") || t.is("[") || t.is(".") || t.is(":") || t.is("{"):
		p.fail()
	}
	return e
}

func (p *scriptParser) atom() expression {
	switch t := p.peek(); {
	case t.kind == luaNumber:
		return luaConstant{p.number()}
	case t.kind == luaPlain:
		p.next()
		return luaConstant{luaValue{kind: valueText, text: t.text}}
	case p.takes("("):
		e := p.expression()
		p.want(")")
		return e
	case p.takes("{"):
		r := luaReply{err: p.peek().text == "err"}
		if !r.err && p.peek().text != "ok" {
			p.fail()
		}
		p.next()
		p.want("=")
		r.text = p.expression()
		p.want("}")
		return r
	case p.takes("nil"):
		return luaConstant{luaValue{kind: valueNil}}
	case p.takes("true"):
		return luaConstant{luaValue{kind: valueTrue}}
	case p.takes("false"):
		return luaConstant{luaValue{kind: valueFalse}}
	case p.takes("KEYS"):
		return p.element(false)
	case p.takes("ARGV"):
		return p.element(true)
	case p.takes("redis") || p.takes("server"):
		return p.member()
	case p.takes("type"):
		return luaType{p.argument()}
	case t.kind == luaName && !luaHarmless[t.text]:
		p.next()
		return luaVariable(t.text)
	}
	p.fail()
	return luaConstant{}
}

// number reads an integer as Lua holds it exactly.
func (p *scriptParser) number() luaValue {
	t := p.next()
	n, err := strconv.ParseInt(t.text, 10, 64)
	if t.kind != luaNumber || err != nil || n >= 1<<53 {
		p.fail()
	}
	return luaValue{kind: valueNumber, number: n}
}

func (p *scriptParser) element(argv bool) expression {
	p.want("[")
	w := word{argv: argv, index: int(p.number().number)}
	p.want("]")
	if w.index < 1 || w.index > maxScriptWords {
		p.fail()
	}
	if !slices.Contains(p.words, w) {
		p.words = append(p.words, w)
	}
	return luaConstant{luaValue{kind: valueWord, word: w}}
}

// argument is the only one of a function.
func (p *scriptParser) argument() expression {
	p.want("(")
	e := p.expression()
	p.want(")")
	return e
}

// member reads what stands behind redis or server.
func (p *scriptParser) member() expression {
	p.want(".")
	t := p.next()
	switch t.text {
	case "error_reply", "status_reply":
		return luaReply{t.text == "error_reply", p.argument()}
	case "call", "pcall":
	default:
		p.fail()
	}
	p.want("(")
	name := p.next()
	if name.kind != luaPlain {
		p.fail()
	}
	c := &luaCommand{caught: t.text == "pcall", name: name.text}
	if p.takes(",") {
		c.args = p.list()
	}
	p.want(")")
	return c
}

// luaHarmless are Lua's keywords and the globals that lead to no command.
var luaHarmless = words(`and break do else elseif end false for function if in local nil not or repeat return then true
	until while
	KEYS ARGV assert bit cjson cmsgpack error ipairs math next pairs pcall select string struct table tonumber
	tostring type unpack`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}
