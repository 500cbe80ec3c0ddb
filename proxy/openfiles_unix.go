//go:build unix

package proxy

import "syscall"

// openFilesAllowed is how many files this process may have open at a time;
// false where the system does not say.
func openFilesAllowed() (uint64, bool) {
	var allowed syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &allowed); err != nil {
		return 0, false
	}
	return uint64(allowed.Cur), true
}
