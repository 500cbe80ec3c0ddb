package proxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// A secret stands in the configuration itself, in a file, or in an environment
// variable: password, password_file or password_env. Errors never show one,
// nor a value that is more likely a password at the wrong place.

// longestSecret bounds a secret's file, so that a wrong path cannot fill memory.
const longestSecret = 64 << 10

// secretFields are those keys of a mapping. Only one of them may be there.
func (r *yamlReader) secretFields(place *secret) []yamlField {
	first := ""
	field := func(name, what string, find func(text string) (secret, error)) yamlField {
		return yamlField{name: name, secret: true, read: func(node *yaml.Node, key string) {
			text, ok := r.scalar(node, key, what)
			if !ok {
				return
			}
			if first != "" {
				r.fail(node.Line, key, "stands beside %s; only one of the two may", first)
				return
			}
			first = name
			found, err := find(text)
			if err != nil {
				r.fail(node.Line, key, "%s", err)
				return
			}
			*place = found
		}}
	}
	return []yamlField{
		field("password", "a text", func(text string) (secret, error) { return secret(text), nil }),
		field("password_file", "the path of a file", secretFromFile),
		field("password_env", "the name of an environment variable", secretFromEnvironment),
	}
}

// secretFromFile reads a file less one line end at its end, which editors and
// echo write and nobody means.
func secretFromFile(path string) (secret, error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, longestSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", err)
	case len(text) > longestSecret:
		return "", fmt.Errorf("%s is longer than %d bytes", path, longestSecret)
	}
	found := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if found == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return secret(found), nil
}

var environmentName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

func secretFromEnvironment(name string) (secret, error) {
	if !environmentName.MatchString(name) {
		return "", errors.New("is not the name of an environment variable in capitals, such as REDIS_PASSWORD")
	}
	if found := os.Getenv(name); found != "" {
		return secret(found), nil
	}
	return "", fmt.Errorf("the environment variable %s is not set, or is empty", name)
}

// checkPath: a relative path would mean another file in a unit, a container
// and a shell.
func checkPath(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("is not an absolute path; write one that begins with /")
	}
	return nil
}
