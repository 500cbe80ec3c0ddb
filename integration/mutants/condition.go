package main

import (
	"fmt"
	"go/ast"
	"go/token"
)

// A role says what a condition is a part of.
type role int

const (
	whole  role = iota // all of it decides
	ofLoop             // the condition of a loop, which would not end if it always held
	ofAnd              // without it the others decide
	ofOr
)

// condition makes mutants of a condition that decides something: without each part of it,
// and with bounds shifted by one.
func (g *generator) condition(e ast.Expr, as role) {
	if !g.isPlainBool(e) {
		return
	}
	switch inner := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		switch inner.Op {
		case token.LAND, token.LOR:
			part := ofAnd
			if inner.Op == token.LOR {
				part = ofOr
			}
			// The whole comes before its parts: weave puts what is outside first.
			switch {
			case as == part: // this chain goes on in the one around it
			case as == ofAnd:
				g.choose(e, asIfTrue)
			case as == ofOr:
				g.choose(e, asIfFalse)
			case part == ofAnd: // without all of its parts it always holds; never is new
				g.choose(e, never)
			case as == whole:
				g.choose(e, always)
			}
			g.condition(inner.X, part)
			g.condition(inner.Y, part)
			return
		}
	case *ast.UnaryExpr:
		if chain, ok := ast.Unparen(inner.X).(*ast.BinaryExpr); ok && inner.Op == token.NOT && (chain.Op == token.LAND || chain.Op == token.LOR) {
			g.condition(inner.X, whole)
			return
		}
	}
	switch as {
	case ofAnd:
		g.choose(e, asIfTrue)
	case ofOr:
		g.choose(e, asIfFalse)
	case ofLoop:
		g.choose(e, never)
	case whole:
		g.choose(e, never, always)
	}
}

// What a condition becomes. A part of a chain is dropped: it is as if true or false.
const (
	never     = "never"
	always    = "always"
	asIfTrue  = "dropped, as if true"
	asIfFalse = "dropped, as if false"
)

// choose lets a condition hold never, or always.
func (g *generator) choose(e ast.Expr, changes ...string) {
	before, behind := "(", ")"
	for _, change := range changes {
		n := g.add(e, change)
		if change == never || change == asIfFalse {
			before, behind = before+fmt.Sprintf("!chosen_.Is(%d) && (", n), behind+")"
		} else {
			before, behind = before+fmt.Sprintf("chosen_.Is(%d) || (", n), behind+")"
		}
	}
	g.wrap(e, before, behind)
}

// expression makes mutants of a comparison, a condition that is a value, and a sum.
func (g *generator) expression(e *ast.BinaryExpr, parent ast.Node) {
	switch e.Op {
	case token.LAND, token.LOR, token.EQL, token.NEQ:
		if g.isValue(e, parent) {
			g.condition(e, whole)
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if g.isValue(e, parent) {
			g.condition(e, whole)
		}
		g.shift(e)
	case token.ADD, token.SUB:
		g.term(e)
	}
}

// isValue tells whether a condition is a value of its own: nobody else makes mutants of it.
func (g *generator) isValue(e ast.Expr, parent ast.Node) bool {
	switch parent := parent.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
		return false
	case *ast.BinaryExpr:
		return parent.Op != token.LAND && parent.Op != token.LOR
	case *ast.UnaryExpr, *ast.ParenExpr:
		return false // its own parent would have to tell; that is rare
	}
	return g.isPlainBool(e)
}

var shifted = map[token.Token][2]string{
	token.LSS: {"Less", "<="}, token.LEQ: {"LessEqual", "<"}, token.GTR: {"Greater", ">="}, token.GEQ: {"GreaterEqual", ">"},
}
