package shipped

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

var writeLicences = flag.Bool("write-licences", false, "write deploy/LICENCES.txt")

const (
	licencesFile    = "../deploy/LICENCES.txt"
	licencesCommand = "REDLOCK_TEST=servers go test ./integration/shipped -run '^TestLicences$' -write-licences"
)

// TestLicences: deploy/LICENCES.txt is part of the image. It has the licences and notices of
// exactly the modules that are linked into the program. The handbook gives the purpose of
// each module.
func TestLicences(t *testing.T) {
	t.Parallel()
	modules := linkedModules(t)
	want := licences(t, modules)
	written, err := os.ReadFile(licencesFile)
	switch {
	case err == nil && string(written) == want:
	case *writeLicences:
		if err := os.WriteFile(licencesFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what is linked (%v); write it with: %s", licencesFile, err, licencesCommand)
	}
	_, section, _ := strings.Cut(rig.ReadFile(t, "../deploy/REFERENCE.md"), "\n## Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for _, found := range regexp.MustCompile("`([a-z.]+/[^` ]+)`").FindAllStringSubmatch(section, -1) {
		named = append(named, found[1])
	}
	for _, module := range modules {
		if !slices.Contains(named, module.Path) {
			t.Errorf("the handbook's Dependencies do not name %s", module.Path)
		}
	}
	inUse := rig.ReadFile(t, "../go.mod")
	for _, path := range named {
		if !strings.Contains(inUse, "\t"+path+" v") {
			t.Errorf("the handbook's Dependencies name %s, which go.mod does not", path)
		}
	}
}

// linkedModule is a module whose packages are linked into the program.
type linkedModule struct {
	Path, Version, Dir string
	within             []string // the packages' directories below Dir, and all directories between
}

// linkedModules returns the modules in the image's program, sorted.
func linkedModules(t *testing.T) []linkedModule {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-json=Dir,Module", ".")
	list.Dir, list.Env = "..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	byPath := map[string]*linkedModule{}
	for packages := json.NewDecoder(bytes.NewReader(out)); packages.More(); {
		var each struct {
			Dir    string
			Module *struct {
				linkedModule
				Main bool
			}
		}
		if err := packages.Decode(&each); err != nil {
			t.Fatal(err)
		}
		if each.Module == nil || each.Module.Main {
			continue
		}
		if byPath[each.Module.Path] == nil {
			byPath[each.Module.Path] = &each.Module.linkedModule
		}
		module := byPath[each.Module.Path]
		for dir := each.Dir; dir != module.Dir; dir = filepath.Dir(dir) {
			module.within = append(module.within, dir)
		}
	}
	var modules []linkedModule
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		module := *byPath[path]
		slices.Sort(module.within)
		module.within = slices.Compact(module.within)
		modules = append(modules, module)
	}
	return modules
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)(\.(txt|md))?$`)

// licences returns the text of the file. Modules with the same licence, word for word,
// share one copy. Go's standard library is linked, too.
func licences(t *testing.T, modules []linkedModule) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	holders := map[string][]string{}
	var texts []string
	add := func(holder, dir string) (found int) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !licenceName.MatchString(file.Name()) {
				continue
			}
			text := strings.TrimSpace(strings.ReplaceAll(rig.ReadFile(t, filepath.Join(dir, file.Name())), "\r\n", "\n"))
			if holders[text] == nil {
				texts = append(texts, text)
			}
			holders[text] = append(holders[text], fmt.Sprintf("%s, %s", holder, file.Name()))
			found++
		}
		return found
	}
	add("Go's standard library", strings.TrimSpace(string(root)))
	for _, module := range modules {
		name := module.Path + " " + module.Version
		if add(name, module.Dir) == 0 {
			t.Errorf("%s has no licence in %s", name, module.Dir)
		}
		for _, dir := range module.within { // code that the module took from other projects
			add(name+strings.TrimPrefix(dir, module.Dir), dir)
		}
	}
	var b strings.Builder
	b.WriteString("Licences and notices of what is linked into redlock-proxy besides its own code.\n")
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(holders[text], "\n"), strings.Repeat("=", 80), text)
	}
	return b.String()
}
