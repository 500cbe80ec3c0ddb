package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// installers make the languages' programs from the words that libraries.txt has behind the language.
var installers = map[string]func(t *testing.T, words []string) clientProgram{
	"python": python, "node": node, "java": java, "php": php, "ruby": ruby, "go": golang, "cpp": cpp, "rust": rust, "sh": shell,
}

func (l library) install(t *testing.T) clientProgram {
	t.Helper()
	return installers[l.program[0]](t, l.program[1:])
}

// python installs the packages of a requirements file into a directory of their own.
func python(t *testing.T, words []string) clientProgram {
	t.Helper()
	rig.Need(t, rig.Python, rig.Pip)
	file := absolute(t, "clients/python/requirements/"+words[1]+".txt")
	dir := installed(t, words[1], []string{file}, func(dir string) error {
		return fetch(t, dir, "python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", dir, "--requirement", file)
	})
	return clientProgram{words: []string{"python3", "-B", "clients/python/" + words[0]}, env: []string{"PYTHONPATH=" + dir}}
}

// node installs all versions at once. The lock file gives each version a name.
func node(t *testing.T, words []string) clientProgram {
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
	return clientProgram{words: []string{"node", "clients/node/" + words[0]}, env: []string{"NODE_PATH=" + filepath.Join(dir, "node_modules")}}
}

// java has Maven fetch a profile's dependencies and compiles the program with them.
func java(t *testing.T, words []string) clientProgram {
	t.Helper()
	rig.Need(t, rig.Java, rig.Maven)
	class, profile := words[0], words[1]
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

// golang builds the one program that has all Go libraries. Go's own caches keep its modules.
func golang(t *testing.T, _ []string) clientProgram {
	t.Helper()
	binary := filepath.Join(rig.Scratch, "conformance")
	installing.Lock()
	defer installing.Unlock()
	if _, err := os.Stat(binary); err != nil {
		if err := fetch(t, "clients/go-conformance", "go", "build", "-o", binary, "."); err != nil {
			t.Fatal(err)
		}
	}
	return clientProgram{words: []string{binary}}
}

// cpp compiles the program with Debian's hiredis.
func cpp(t *testing.T, _ []string) clientProgram {
	t.Helper()
	rig.Need(t, rig.Compiler, rig.Hiredis)
	sources := []string{absolute(t, "clients/cpp/conversation.cpp"), absolute(t, "clients/cpp/conformance_redis_plus_plus.cpp")}
	header := absolute(t, "clients/cpp/conversation.h")
	dir := installed(t, "hiredis", append(slices.Clone(sources), header), func(dir string) error {
		return install(dir, slices.Concat([]string{"g++", "-std=c++17", "-O1", "-o", "conformance"}, sources, []string{"-lhiredis"})...)
	})
	return clientProgram{words: []string{filepath.Join(dir, "conformance")}}
}

// rust builds the one program that has all crates. Cargo keeps its output in the user's
// cache, so that only the first run takes minutes.
func rust(t *testing.T, _ []string) clientProgram {
	t.Helper()
	rig.Need(t, rig.Cargo)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(cache, "redlock-proxy-clients", "cargo")
	installing.Lock()
	defer installing.Unlock()
	if err := fetch(t, "clients/rust", "cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target); err != nil {
		t.Fatal(err)
	}
	return clientProgram{words: []string{filepath.Join(target, "release", "conformance")}}
}

// php runs a program with Debian's PHP libraries.
func php(t *testing.T, words []string) clientProgram {
	t.Helper()
	rig.Need(t, rig.PHP, rig.Phpredis, rig.Predis)
	switch words[0] {
	case "conformance_symfony.php":
		rig.Need(t, rig.SymfonyLock)
	case "conformance_illuminate.php":
		rig.Need(t, rig.LaravelCache, rig.LaravelRedis, rig.Laravel)
	}
	return clientProgram{words: []string{"php", "clients/php/" + words[0]}}
}

// ruby runs a program with Debian's redis-rb.
func ruby(t *testing.T, words []string) clientProgram {
	t.Helper()
	rig.Need(t, rig.Ruby, rig.RubyRedis)
	return clientProgram{words: []string{"ruby", "clients/ruby/" + words[0]}}
}

// shell runs a script over redis-cli, which the room needs.
func shell(_ *testing.T, words []string) clientProgram {
	return clientProgram{words: []string{"sh", "clients/sh/" + words[0]}}
}
