package main

import (
	"go/ast"
	"slices"
	"strings"
)

// An edit puts a text before or behind a node, or in the place of source text.
type edit struct {
	at, end int // offsets; the same if nothing is replaced
	behind  bool
	text    string
}

func (g *generator) wrap(n ast.Node, before, behind string) {
	at, end := g.offset(n.Pos()), g.offset(n.End())
	g.edits = append(g.edits, edit{at: at, end: at, text: before}, edit{at: end, end: end, behind: true, text: behind})
}

// weave makes all edits. At one place, what ends there comes first, from the inside out;
// then begins what begins there, from the outside in. Outer nodes were visited first.
func (g *generator) weave() string {
	order := make([]int, len(g.edits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := g.edits[x], g.edits[y]
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.behind && b.behind:
			return y - x
		case a.behind:
			return -1
		case b.behind:
			return 1
		}
		return x - y
	})
	var out strings.Builder
	done := 0
	for _, i := range order {
		e := g.edits[i]
		out.Write(g.file.text[done:e.at])
		out.WriteString(e.text)
		done = max(done, e.end)
	}
	out.Write(g.file.text[done:])
	behind := "package " + g.file.parsed.Name.Name
	return strings.Replace(out.String(), behind, behind+`; import chosen_ "redlock-proxy/integration/mutants/chosen"`, 1)
}
