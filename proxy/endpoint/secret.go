package endpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// longestSecret bounds a secret's file in bytes, so that a wrong path cannot fill memory.
const longestSecret = 64 << 10

// A Secret is a password. It prints as "set" or "none".
type Secret string

func (s Secret) String() string {
	if s == "" {
		return "none"
	}
	return "set"
}

// GoString keeps %#v from showing the text.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps encoders, such as a JSON log, from showing the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SecretFromFile reads a secret from a file. It drops one line end at the end, which
// editors and echo add.
func SecretFromFile(path string) (Secret, error) {
	if err := CheckPath(path); err != nil {
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
	return Secret(found), nil
}

var environmentName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// SecretFromEnvironment reads an environment variable.
func SecretFromEnvironment(name string) (Secret, error) {
	if !environmentName.MatchString(name) {
		return "", errors.New("is not the name of an environment variable in capitals, such as REDIS_PASSWORD")
	}
	if found := os.Getenv(name); found != "" {
		return Secret(found), nil
	}
	return "", fmt.Errorf("the environment variable %s is not set, or is empty", name)
}

// CheckPath rejects a relative path, because it would mean different files in a systemd
// unit, a container and a shell.
func CheckPath(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("is not an absolute path; write one that begins with /")
	}
	return nil
}
