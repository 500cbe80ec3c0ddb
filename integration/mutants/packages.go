package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// A source is one package of the product with its types.
type source struct {
	dir       string // from the module's root
	positions *token.FileSet
	files     []sourceFile
	info      *types.Info
}

type sourceFile struct {
	path   string // from the module's root
	text   []byte
	parsed *ast.File
}

// listed is what the go command tells of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, TestGoFiles    []string
}

// readSources reads these directories. The go command compiles what they import.
func readSources(dirs []string) ([]source, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	packages, err := goList(args)
	if err != nil {
		return nil, err
	}
	exports, files := map[string]string{}, map[string][]string{}
	for _, p := range packages {
		exports[p.ImportPath], files[p.Dir] = p.Export, p.GoFiles
	}
	var sources []source
	for _, dir := range dirs {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		s, err := readSource(dir, files[absolute], exports)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

func goList(args []string) ([]listed, error) {
	command := exec.Command("go", args...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []listed
	for in := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

func readSource(dir string, names []string, exports map[string]string) (source, error) {
	s := source{dir: dir, positions: token.NewFileSet(), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	var parsed []*ast.File
	for _, name := range names {
		f := sourceFile{path: filepath.ToSlash(filepath.Join(dir, name))}
		var err error
		if f.text, err = os.ReadFile(f.path); err != nil {
			return s, err
		}
		if f.parsed, err = parser.ParseFile(s.positions, f.path, f.text, parser.ParseComments); err != nil {
			return s, err
		}
		s.files, parsed = append(s.files, f), append(parsed, f.parsed)
	}
	config := types.Config{Importer: importer.ForCompiler(s.positions, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	_, err := config.Check(dir, s.positions, parsed, s.info)
	return s, err
}
