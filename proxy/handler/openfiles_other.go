//go:build !unix

package handler

// openFilesAllowed returns false, because this system does not tell a limit.
func openFilesAllowed() (uint64, bool) { return 0, false }
