package rig

import (
	"os/exec"
	"strings"
)

// RedisCLI runs one redis-cli command. It returns everything that redis-cli prints,
// error messages included.
func RedisCLI(args ...string) string {
	out, _ := exec.Command("redis-cli", args...).CombinedOutput()
	return strings.TrimSpace(string(out))
}
