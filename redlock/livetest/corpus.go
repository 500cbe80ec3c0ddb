package livetest

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// Corpus is all scripts of the suite's corpus, which means what the scripts of lock
// libraries mean, by their names. They are read from the source of the suite, which
// is in that folder, for the suite shares no package with the product.
func Corpus(t testing.TB, suite string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(suite, "corpus", "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("the suite's corpus is not where it was: %v", err)
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	// The checker is asked for the values of constants only: types from other
	// files and packages are missing.
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Error: func(error) {}, DisableUnusedImportCheck: true}
	config.Check("corpus", files, parsed, &info)
	for i, file := range parsed {
		base := "corpus_" + strings.TrimSuffix(filepath.Base(paths[i]), ".go")
		add := func(name string, e ast.Expr) {
			v := info.Types[e].Value
			if v == nil || v.Kind() != constant.String {
				return
			}
			if text := constant.StringVal(v); strings.Contains(text, ".call(") || strings.Contains(text, ".pcall(") {
				for name = base + ": " + name; texts[name] != ""; name += ", again" {
				}
				texts[name] = text
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key := info.Types[n.Key].Value; key != nil && key.Kind() == constant.String {
					add(constant.StringVal(key), n.Value)
				}
			case *ast.ValueSpec:
				for i, value := range n.Values {
					add(n.Names[i].Name, value)
				}
			}
			return true
		})
	}
	return texts
}
