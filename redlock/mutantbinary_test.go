package redlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// All mutants are compiled into one test binary, because separate binaries would cost
// seconds each. There, every function that mutants edit begins with their versions of its
// body, and -mutant chooses one:
//
//	func (t tally) acquire() Verdict {
//		if *chosenMutant == 0 {
//			need := max(1, t.masters/2)
//			...
//		}
//		need := quorum(t.masters)
//		...
//
// Edits may be in this package and in those below it. Each edited package gets a
// chosenMutant. All of them point to one flag, in a package that only these binaries
// contain. A package below this one has a test binary of its own if its tests catch
// mutants.

const (
	chooserPackage = "mutantchooser"
	chooserFlag    = `package mutantchooser

import "flag"

var Chosen = flag.Int("mutant", -1, "which mutant to be")
`
	chooser = `package %s

import "redlock-proxy/redlock/mutantchooser"

var chosenMutant = mutantchooser.Chosen
`
)

// buildMutants compiles these packages' tests with the mutants, and returns the path of a
// binary for each package. A mutant's number is its place in the list. A package is a
// directory that ends in a slash, or "" for this one.
func buildMutants(t *testing.T, mutants []mutant, packages []string) map[string]string {
	t.Helper()
	files := mutate(t, mutants)
	texts := map[string]string{absolute(t, filepath.Join(chooserPackage, "flag.go")): chooserFlag}
	for _, f := range files {
		texts[f.path] = f.withVersions()
		texts[filepath.Join(filepath.Dir(f.path), chooserPackage+".go")] = fmt.Sprintf(chooser, f.packageName)
	}
	dir := t.TempDir()
	args := []string{"test", "-c", "-vet=off", "-overlay", writeOverlay(t, dir, texts), "-o", dir}
	binaries := map[string]string{}
	for _, p := range packages {
		args = append(args, "./"+p)
		binaries[p] = filepath.Join(dir, filepath.Base(absolute(t, p))+".test")
	}
	if output, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binaries
}

// mutate makes all edits. Each edit that does not fit the code is an error of the test.
func mutate(t *testing.T, mutants []mutant) map[string]*mutatedFile {
	t.Helper()
	files := map[string]*mutatedFile{}
	for n, m := range mutants {
		for _, e := range m.edits {
			if files[e.file] == nil {
				f, err := readMutated(absolute(t, e.file))
				if err != nil {
					t.Errorf("%s: %v", m.rule, err)
					continue
				}
				files[e.file] = f
			}
			if err := files[e.file].edit(n, m.rule, e); err != nil {
				t.Errorf("%s: %v", m.rule, err)
			}
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return files
}

// writeOverlay writes the files that the go command must read in place of those at these
// paths. It returns the path of the list for -overlay.
func writeOverlay(t *testing.T, dir string, texts map[string]string) string {
	t.Helper()
	replaced := map[string]string{}
	for path, text := range texts {
		replaced[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A mutatedFile is a source file and the versions of its functions.
type mutatedFile struct {
	path        string
	packageName string
	text        string
	functions   []*mutatedFunction // in the file's order
}

// A mutatedFunction is a function with a body. It is text[start:end] of its file. The
// body begins at inside, behind the opening brace.
type mutatedFunction struct {
	start, inside, end int
	line               int // of the brace
	returns            bool
	versions           []version
}

// A version is the whole text of a function in mutant n.
type version struct {
	n          int
	rule, text string
}

func readMutated(path string) (*mutatedFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, path, text, 0)
	if err != nil {
		return nil, err
	}
	f := &mutatedFile{path: path, packageName: parsed.Name.Name, text: string(text)}
	for _, d := range parsed.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			brace := positions.Position(d.Body.Lbrace)
			f.functions = append(f.functions, &mutatedFunction{
				start:   positions.Position(d.Pos()).Offset,
				inside:  brace.Offset + 1,
				end:     positions.Position(d.End()).Offset,
				line:    brace.Line,
				returns: d.Type.Results != nil,
			})
		}
	}
	return f, nil
}

// edit makes one of the edits of mutant n.
func (f *mutatedFile) edit(n int, rule string, e edit) error {
	if times := strings.Count(f.text, e.old); times != 1 {
		return fmt.Errorf("%s has this %d times instead of once: %s", e.file, times, e.old)
	}
	at := strings.Index(f.text, e.old)
	for _, fn := range f.functions {
		if at < fn.start || at+len(e.old) > fn.end {
			continue
		}
		last := len(fn.versions) - 1
		if last < 0 || fn.versions[last].n != n {
			fn.versions = append(fn.versions, version{n, rule, f.text[fn.start:fn.end]})
			last++
		}
		v := &fn.versions[last]
		if strings.Count(v.text, e.old) != 1 {
			return errors.New("another of its edits changed this: " + e.old)
		}
		v.text = strings.Replace(v.text, e.old, e.new, 1)
		if !strings.HasPrefix(v.text, f.text[fn.start:fn.inside]) {
			return errors.New("it edits more than a function's body: " + e.old)
		}
		return nil
	}
	return errors.New("it edits what is not one function: " + e.old)
}

// withVersions returns the file's text with all versions of its functions. In errors a
// version's file name is the mutant's rule.
func (f *mutatedFile) withVersions() string {
	var out strings.Builder
	done := 0
	for _, fn := range f.functions {
		if len(fn.versions) == 0 {
			continue
		}
		out.WriteString(f.text[done:fn.inside])
		done = fn.inside
		for _, v := range fn.versions {
			body := v.text[fn.inside-fn.start : len(v.text)-1]
			if !fn.returns {
				body += "\nreturn"
			}
			fmt.Fprintf(&out, "\nif *chosenMutant == %d {\n//line %s:%d\n%s\n}", v.n, v.rule, fn.line, body)
		}
		fmt.Fprintf(&out, "\n//line %s:%d\n", f.path, fn.line)
	}
	out.WriteString(f.text[done:])
	return out.String()
}
