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

// secret reads one of those keys. Only one of them may be there.
func (r *configReader) secret(node *yaml.Node, key string, place *secret) {
	stem, last, _ := strings.Cut(key, "password")
	for _, other := range []string{"", "_file", "_env"} {
		if other != last && r.has(stem+"password"+other) {
			r.fail(key, "stands beside password%s; only one of the two may", other)
			return
		}
	}
	if node.Kind != yaml.ScalarNode {
		r.fail(key, "must be a single value, not a list or a mapping")
		return
	}
	var err error
	switch last {
	case "_file":
		*place, err = secretFromFile(node.Value)
	case "_env":
		*place, err = secretFromEnvironment(node.Value)
	default:
		*place = secret(node.Value)
	}
	if err != nil {
		r.fail(key, "%s", err)
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
