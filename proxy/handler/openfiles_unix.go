//go:build unix

package handler

import "syscall"

// openFilesAllowed returns the number of files that this process may have open at a time.
// It returns false if the system does not tell.
func openFilesAllowed() (uint64, bool) {
	var allowed syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &allowed); err != nil {
		return 0, false
	}
	return uint64(allowed.Cur), true
}
