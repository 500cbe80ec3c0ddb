package proxy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// nextStep finds what an operator can do: a heading of the handbook, or a clause that begins with a verb.
var nextStep = regexp.MustCompile(`deploy/[A-Z]+\.md#[a-z]|\(please report|[;:,] (start once with|add|ask|check|correct|delete|give|grant|have|make|name|raise|run|set|shorten|spread|subscribe|tell|try|use|watch)\b` +
	`|only after RESET|its client must renew it|has the rules|DEL deletes them`)

// logs finds what writes a line of the log.
var logs = regexp.MustCompile(`(?i:\b(log|to)\.)(Warn|Error)$|r\.warn$|\.(warnOnce|logRefusal)$`)

// Each line of the log at WARN or above, and each error of a client that only this proxy has, says what to do next.
func TestTroubleSaysWhatToDo(t *testing.T) {
	lines, refusals := 0, 0
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "integration/") || strings.HasPrefix(name, "proxy/proxytest/") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join("..", name), nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				called, _ := node.Fun.(*ast.SelectorExpr)
				if called == nil || !logs.MatchString(nameOf(called)) {
					return true
				}
				for _, arg := range node.Args {
					if text := textOf(arg); strings.Count(text, " ") > 1 {
						if lines++; !nextStep.MatchString(text) {
							t.Errorf("%s: %q", files.Position(node.Pos()), text)
						}
						break
					}
				}
			case *ast.BasicLit, *ast.BinaryExpr:
				text := textOf(node.(ast.Expr))
				if strings.HasPrefix(text, "-NOUPSTREAM ") || strings.HasPrefix(text, "-CROSSLOCK ") || strings.HasPrefix(text, "-TRYAGAIN ") || strings.HasPrefix(text, "-ERR the lock") || strings.HasPrefix(text, "-ERR this proxy") {
					if refusals++; !nextStep.MatchString(text) {
						t.Errorf("%s: %q", files.Position(node.Pos()), text)
					}
					return false
				}
			}
			return true
		})
		return nil
	})
	if err != nil || lines < 25 || refusals < 10 {
		t.Errorf("%d lines of the log and %d errors were found: %v", lines, refusals, err)
	}
}

// textOf joins the literal parts of a text.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	}
	return ""
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}
