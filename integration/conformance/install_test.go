package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// clientProgram is a command line. The arguments of a step are appended to it.
type clientProgram struct {
	words []string
	env   []string
}

// installing makes sure that only one package manager works at a time.
var installing sync.Mutex

// installed returns a directory that fill has filled. The directory is in the user's cache.
// Its name is a hash of the files that list the versions, so later runs find it there. What
// cannot be downloaded is missing, as layer.Missing says. Any other failure of fill fails the
// test.
func installed(t *testing.T, name string, files []string, fill func(dir string) error) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, name)
	for _, file := range files {
		contents, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(contents)
	}
	dir := filepath.Join(cache, "redlock-proxy-clients", hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	// Another run may install the same thing at this moment. Only a complete directory gets
	// the final name, and the first one stays.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(dir), "unfinished-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(unfinished)
	if err := fill(unfinished); errors.As(err, new(notDownloaded)) {
		t.Log(err)
		layer.Missing(t, "a download, which failed: "+name)
	} else if err != nil {
		t.Fatalf("installing %s: %v", name, err)
	}
	if err := os.Rename(unfinished, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fetch runs an installation that downloads something. It tries again after a failure.
func fetch(t *testing.T, dir string, words ...string) error {
	t.Helper()
	if err := install(dir, append([]string{absolute(t, "again.sh")}, words...)...); err != nil {
		return notDownloaded{err}
	}
	return nil
}

type notDownloaded struct{ error }

func install(dir string, words ...string) error {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
	}
	return nil
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// node installs all versions at once. The lock file gives each version a name.
func node(script, alias string) func(*testing.T) clientProgram {
	return func(t *testing.T) clientProgram {
		t.Helper()
		rig.Need(t, rig.Node, rig.NPM)
		files := []string{"clients/node/package.json", "clients/node/package-lock.json"}
		dir := installed(t, "npm", files, func(dir string) error {
			for _, file := range files {
				contents, err := os.ReadFile(file)
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), contents, 0o644)
				}
				if err != nil {
					return err
				}
			}
			return fetch(t, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		})
		return clientProgram{
			words: []string{"node", "clients/node/" + script, alias},
			env:   []string{"NODE_PATH=" + filepath.Join(dir, "node_modules")},
		}
	}
}

// java has Maven fetch a profile's dependencies and compiles the program with them.
func java(class, profile string) func(*testing.T) clientProgram {
	return func(t *testing.T) clientProgram {
		t.Helper()
		rig.Need(t, rig.Java, rig.Maven)
		sources, err := filepath.Glob("clients/java/*.java")
		if err != nil {
			t.Fatal(err)
		}
		pom, source := absolute(t, "clients/java/pom.xml"), absolute(t, "clients/java/"+class+".java")
		jars := installed(t, profile, []string{pom}, func(dir string) error {
			return fetch(t, dir, "mvn", "-q", "-B", "-f", pom, "-P", profile, "dependency:copy-dependencies", "-DoutputDirectory="+dir)
		})
		classes := installed(t, class+" "+profile, append(sources, pom), func(dir string) error {
			return install(dir, "javac", "-nowarn", "-d", dir, "-sourcepath", filepath.Dir(source), "-cp", filepath.Join(jars, "*"), source)
		})
		path := classes + string(filepath.ListSeparator) + filepath.Join(jars, "*")
		return clientProgram{words: []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, class}}
	}
}

// interpreted returns a script for an interpreter that Debian installs.
func interpreted(program, script string, needs ...rig.Program) func(*testing.T) clientProgram {
	return func(t *testing.T) clientProgram {
		t.Helper()
		rig.Need(t, needs...)
		return clientProgram{words: []string{program, script}}
	}
}
