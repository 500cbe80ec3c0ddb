package proxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// longestSecret bounds a secret's file, so that a wrong path cannot fill memory.
const longestSecret = 64 << 10

// secret prints as a mark that it is there.
type secret string

func (s secret) String() string {
	if s == "" {
		return "none"
	}
	return "set"
}

// GoString keeps %#v from showing the text.
func (s secret) GoString() string { return s.String() }

// MarshalText keeps encoders, such as a JSON log, from showing the text.
func (s secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

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
