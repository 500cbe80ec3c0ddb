package child

import (
	"os/exec"
	"syscall"
)

// EndWithParent has the system kill a program, not started yet, as soon as this
// process ends, whatever ends it.
func EndWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
