package child

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes the kernel kill a program as soon as this process ends, for whatever
// reason. Call it before the program starts.
func EndWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
