//go:build !linux

package child

import "os/exec"

// EndWithParent does nothing here. Only Linux can end a program with the process that
// started it. Elsewhere, a process that is killed leaves its children running.
func EndWithParent(*exec.Cmd) {}
