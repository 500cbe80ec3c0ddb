package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// A mutant is the product with one change. Its key does not depend on line numbers: it
// stays the same until somebody changes this expression or the name of its function.
type mutant struct {
	number int
	file   string // from the module's root
	in     string // the function
	text   string // what is changed
	change string // how
	nth    int    // among those of one function that read the same, from 1
}

// dir is the directory of the mutant's package.
func (m mutant) dir() string { return path.Dir(m.file) }

func (m mutant) key() string {
	key := fmt.Sprintf("%s %s: %s: %s", m.file, m.in, m.change, m.text)
	if m.nth > 1 {
		key += fmt.Sprintf(" (%d)", m.nth)
	}
	return key
}

// A generator finds the mutants of one file, and the edits that build all of them in.
type generator struct {
	source  source
	file    sourceFile
	mutants *[]mutant // of all files; a mutant's number is its place
	subject subject
	edits   []edit
	in      string
	seen    map[string]int // how often a key occurred in this file
	rules   map[int]string // by the line that follows: see named
	kept    int            // how many rules have their mutant
	// onlyRules leaves all but named rules alone, in a function that does not decide.
	onlyRules bool
	parents   []ast.Node
}

// generate returns the file's text with its mutants built in, or nothing if it has none.
func generate(of subject, s source, f sourceFile, mutants *[]mutant) (string, error) {
	g := &generator{subject: of, source: s, file: f, mutants: mutants, seen: map[string]int{}}
	g.rules = g.named()
	named := len(g.rules)
	for _, d := range f.parsed.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		g.in = nameOf(d)
		g.onlyRules = len(of.functions) > 0 && !slices.Contains(of.functions, g.in)
		if !g.onlyRules || named > 0 {
			g.parents = nil
			ast.Inspect(d.Body, g.visit)
		}
	}
	if named > g.kept {
		return "", fmt.Errorf("%s: a comment %q stands above nothing that can be left out", f.path, ruleMark)
	}
	if len(g.edits) == 0 {
		return "", nil
	}
	return g.weave(), nil
}

func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	return t.(*ast.Ident).Name + "." + d.Name.Name
}

// visit is called with each node before its parts, and with nil behind them.
func (g *generator) visit(n ast.Node) bool {
	if n == nil {
		g.parents = g.parents[:len(g.parents)-1]
		return true
	}
	var parent ast.Node
	if len(g.parents) > 0 {
		parent = g.parents[len(g.parents)-1]
	}
	g.parents = append(g.parents, n)
	switch n := n.(type) {
	case ast.Stmt:
		g.statement(n, parent)
	case ast.Expr:
		g.part(n, parent)
	}
	if g.onlyRules {
		return true
	}
	switch n := n.(type) {
	case *ast.IfStmt:
		g.condition(n.Cond, whole)
	case *ast.ForStmt:
		if n.Cond != nil {
			g.condition(n.Cond, ofLoop)
		}
	case *ast.SwitchStmt:
		g.switched(n)
	case *ast.BinaryExpr:
		g.expression(n, parent)
	case *ast.CallExpr:
		g.extreme(n)
	}
	return true
}

// shift moves a bound by one.
func (g *generator) shift(e *ast.BinaryExpr) {
	if g.source.info.Types[e].Value != nil || isUntyped(g.typeOf(e.X)) && isUntyped(g.typeOf(e.Y)) {
		return
	}
	if g.typeOf(e.X).String() == "time.Duration" {
		return // nothing depends on a nanosecond
	}
	n := g.add(e, shifted[e.Op][1])
	at := g.offset(e.OpPos)
	g.wrap(e, fmt.Sprintf("chosen_.%s(%d, ", shifted[e.Op][0], n), ")")
	g.edits = append(g.edits, edit{at: at, end: at + len(e.Op.String()), text: ","})
}

// term drops the second term of a sum.
func (g *generator) term(e *ast.BinaryExpr) {
	t, ok := g.typeOf(e).Underlying().(*types.Basic)
	if !ok || t.Info()&types.IsNumeric == 0 || g.source.info.Types[e].Value != nil {
		return
	}
	kind := ""
	if right := g.source.info.Types[e.Y]; right.Value != nil {
		// An untyped constant takes the type of the sum, which may have no name here.
		if t, ok := right.Type.(*types.Basic); ok {
			if isUntyped(t) {
				return
			}
			kind = "[" + t.Name() + "]"
		}
		if named, ok := right.Type.(*types.Named); ok {
			if named.String() != "time.Duration" || !g.imports("time") {
				return
			}
			kind = "[time.Duration]"
		}
	}
	n := g.add(e, "without its last term")
	g.wrap(e.Y, fmt.Sprintf("chosen_.Term%s(%d, ", kind, n), ")")
}

// extreme drops an argument of min or max.
func (g *generator) extreme(call *ast.CallExpr) {
	name, ok := call.Fun.(*ast.Ident)
	if !ok || name.Name != "min" && name.Name != "max" || !g.source.info.Types[call.Fun].IsBuiltin() || len(call.Args) < 2 || g.source.info.Types[call].Value != nil {
		return
	}
	first := -1
	for _, arg := range call.Args {
		n := g.add(call, "without "+g.textOf(arg))
		if first < 0 {
			first = n
		}
	}
	function := "Min"
	if name.Name == "max" {
		function = "Max"
	}
	at := g.offset(call.Pos())
	g.edits = append(g.edits, edit{at: at, end: g.offset(call.Lparen) + 1, text: fmt.Sprintf("chosen_.%s(%d, ", function, first)})
}

// switched makes mutants of the cases of a switch: without each.
func (g *generator) switched(s *ast.SwitchStmt) {
	tag := ""
	if s.Tag != nil {
		if g.source.info.Types[s.Tag].Value != nil || !g.isComparedAsWritten(s.Tag) {
			return
		}
		switch {
		case isPure(s.Tag):
			tag = g.textOf(s.Tag)
		case s.Init == nil:
			tag = "tag_" // it must be evaluated once
		default:
			return
		}
	}
	compared := false
	for _, c := range s.Body.List {
		c := c.(*ast.CaseClause)
		for _, e := range c.List {
			if tag == "" {
				as := whole
				if len(c.List) > 1 {
					as = ofOr
				}
				g.condition(e, as)
				continue
			}
			n := g.add(e, "no case of "+g.textOf(s.Tag))
			g.wrap(e, fmt.Sprintf("!chosen_.Is(%d) && (%s) == (", n, tag), ")")
			compared = true
		}
	}
	switch {
	case !compared:
	case tag == "tag_":
		g.wrap(s.Tag, "tag_ := ", "; ")
	default:
		g.edits = append(g.edits, edit{at: g.offset(s.Tag.Pos()), end: g.offset(s.Tag.End())})
	}
}

// isComparedAsWritten tells whether comparing the tag with a case is what switch does.
func (g *generator) isComparedAsWritten(tag ast.Expr) bool {
	_, isInterface := g.typeOf(tag).Underlying().(*types.Interface)
	return !isInterface
}

// statement drops a call or an assignment.
func (g *generator) statement(s ast.Stmt, parent ast.Node) {
	switch parent.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
	default:
		return
	}
	if clause, ok := parent.(*ast.CommClause); ok && clause.Comm == s {
		return
	}
	rule := g.ruleOf(s)
	if rule == "" && !g.subject.isPure {
		return
	}
	switch s := s.(type) {
	case *ast.ReturnStmt:
		if rule != "" && len(s.Results) == 1 {
			g.leaveOut(s.Results[0], rule)
		}
		return
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok || isExempt(g.textOf(call.Fun)) {
			return
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE && rule != "" && len(s.Rhs) == len(s.Lhs) {
			g.leaveOut(s.Rhs[0], rule)
		}
		if s.Tok == token.DEFINE || isBlank(s.Lhs) {
			return
		}
	case *ast.IncDecStmt:
	default:
		return
	}
	change := "dropped"
	if rule != "" {
		change = "dropped, the rule that " + rule
		g.kept++
	}
	n := g.add(s, change)
	g.wrap(s, fmt.Sprintf("if !chosen_.Is(%d) { ", n), " }")
}

// isExempt tells of calls that no test of behaviour could miss: logs, and mutexes, which
// the race detector judges. What panics may be the end of a function.
func isExempt(function string) bool {
	last := function[strings.LastIndexByte(function, '.')+1:]
	return function == "panic" || slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, last) ||
		strings.Contains(strings.ToLower(function), "log")
}

func isBlank(left []ast.Expr) bool {
	return !slices.ContainsFunc(left, func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return !ok || name.Name != "_"
	})
}

// isPure tells of an expression that can be written twice.
func isPure(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isPure(e.X)
	case *ast.ParenExpr:
		return isPure(e.X)
	case *ast.IndexExpr:
		return isPure(e.X) && isPure(e.Index)
	case *ast.BasicLit:
		return true
	case *ast.StarExpr:
		return isPure(e.X)
	}
	return false
}

func (g *generator) isPlainBool(e ast.Expr) bool {
	t := g.source.info.Types[e]
	basic, ok := t.Type.(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0 && (t.Value == nil || t.Value.Kind() != constant.Bool)
}

func (g *generator) typeOf(e ast.Expr) types.Type { return g.source.info.Types[e].Type }

func isUntyped(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsUntyped != 0
}

func (g *generator) imports(path string) bool {
	return slices.ContainsFunc(g.file.parsed.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+path+`"` })
}

// add makes a mutant and returns its number.
func (g *generator) add(n ast.Node, change string) int {
	m := mutant{number: len(*g.mutants), file: g.file.path, in: g.in, text: g.textOf(n), change: change, nth: 1}
	g.seen[m.key()]++
	m.nth = g.seen[m.key()]
	*g.mutants = append(*g.mutants, m)
	return m.number
}

func (g *generator) offset(p token.Pos) int { return g.source.positions.Position(p).Offset }

// textOf returns a node's text on one line.
func (g *generator) textOf(n ast.Node) string {
	return strings.Join(strings.Fields(string(g.file.text[g.offset(n.Pos()):g.offset(n.End())])), " ")
}
