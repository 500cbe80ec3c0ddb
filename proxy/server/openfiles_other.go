//go:build !unix

package server

// openFilesAllowed returns false, because this system does not tell a limit.
func openFilesAllowed() (uint64, bool) { return 0, false }
