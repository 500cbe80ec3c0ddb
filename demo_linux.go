package main

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill the program when this process ends, and keeps a Ctrl-C
// at the terminal from it.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
