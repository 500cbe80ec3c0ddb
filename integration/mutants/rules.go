package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// ruleMark begins a comment that names the rule which the line below it keeps. In a mutant a
// call or an assignment that begins there is dropped, whatever it does. The value is zero that a
// new variable or the caller gets there, or that is an argument or an element there.
const ruleMark = "// rule: "

// named returns the names of the file's rules by the lines of their statements.
func (g *generator) named() map[int]string {
	rules := map[int]string{}
	for _, group := range g.file.parsed.Comments {
		for _, c := range group.List {
			if name, ok := strings.CutPrefix(c.Text, ruleMark); ok {
				rules[g.source.positions.Position(group.End()).Line+1] = name
			}
		}
	}
	return rules
}

// ruleOf returns the name of the rule that is named above a node. It belongs to the
// outermost node that begins there.
func (g *generator) ruleOf(n ast.Node) string {
	line := g.source.positions.Position(n.Pos()).Line
	rule := g.rules[line]
	delete(g.rules, line)
	return rule
}

// part leaves out an argument or an element below a named rule.
func (g *generator) part(e ast.Expr, parent ast.Node) {
	switch parent.(type) {
	case *ast.CallExpr, *ast.CompositeLit:
		if rule := g.ruleOf(e); rule != "" {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				e = pair.Value
			}
			g.leaveOut(e, rule)
		}
	}
}

// leaveOut makes a value zero.
func (g *generator) leaveOut(e ast.Expr, rule string) {
	g.kept++
	n, kind := g.add(e, "left out, the rule that "+rule), ""
	if t, ok := g.typeOf(e).(*types.Basic); ok {
		kind = "[" + t.Name() + "]" // a constant has the type that it gets here
	}
	g.wrap(e, fmt.Sprintf("chosen_.Term%s(%d, ", kind, n), ")")
}
