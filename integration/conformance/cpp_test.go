package conformance

import (
	"path/filepath"
	"slices"
	"testing"

	"redlock-proxy/integration/rig"
)

func init() {
	skips := map[string]string{"inspection": "it cannot look at a lock"}
	conformanceLibraries = slices.Concat(conformanceLibraries, []conformanceLibrary{
		{library: "commands of redis-plus-plus", long: true, version: "1.3.15", variant: "RedMutex on hiredis", selects: "RedMutex",
			program: cpp, skips: skips},
		{library: "commands of redis-plus-plus", long: true, version: "1.3.15", variant: "RedMutexTx on hiredis", selects: "RedMutexTx",
			program: cpp, skips: skips},
	})
}

// cpp compiles the program with Debian's hiredis.
func cpp(t *testing.T) clientProgram {
	t.Helper()
	rig.Need(t, rig.Compiler, rig.Hiredis)
	sources := []string{absolute(t, "clients/cpp/conversation.cpp"), absolute(t, "clients/cpp/conformance_redis_plus_plus.cpp")}
	header := absolute(t, "clients/cpp/conversation.h")
	dir := installed(t, "hiredis", append(slices.Clone(sources), header), func(dir string) error {
		return install(dir, slices.Concat([]string{"g++", "-std=c++17", "-O1", "-o", "conformance"}, sources, []string{"-lhiredis"})...)
	})
	return clientProgram{words: []string{filepath.Join(dir, "conformance")}}
}
