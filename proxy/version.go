package proxy

import (
	"runtime/debug"
	"strings"
)

// number is the version of the proxy, by semver.org. All that tells a version reads it here, and so do the
// programs that make packages.
const number = "0.9.0"

// commit is set by the linker (-X) if the sources are built without their repository. With
// the repository the build records the commit itself.
var commit string

// A build says which sources and which Go made this process, as far as recorded.
type build struct {
	revision, goVersion string
	changed             bool // the sources had uncommitted changes
}

// Version returns the proxy's version, and the commit and the Go version if the build
// recorded them.
func Version() string { return thisBuild().String() }

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return readBuild(info, commit)
}

// readBuild prefers the commit that the build recorded to the linker's.
func readBuild(info *debug.BuildInfo, commit string) build {
	b := build{revision: commit, goVersion: info.GoVersion}
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision" && setting.Value != "":
			b.revision = setting.Value
		case setting.Key == "vcs.modified":
			b.changed = setting.Value == "true"
		}
	}
	b.revision = b.revision[:min(len(b.revision), 12)]
	return b
}

func (b build) String() string {
	var details []string
	if b.revision != "" {
		text := "commit " + b.revision
		if b.changed {
			text += " with changes"
		}
		details = append(details, text)
	}
	if b.goVersion != "" {
		details = append(details, b.goVersion)
	}
	if len(details) == 0 {
		return number
	}
	return number + " (" + strings.Join(details, ", ") + ")"
}

// labels returns the version, the revision and the Go version, for the metric.
func (b build) labels() []string { return []string{number, b.revision, b.goVersion} }
