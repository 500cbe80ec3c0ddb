package proxy

import (
	"runtime/debug"
	"strings"
)

// commit is set by the linker (-X) if the sources are built without their repository. With
// the repository the build records the commit itself.
var commit string

// A build says which sources and which Go made this process, as far as recorded.
type build struct {
	version, revision, goVersion string
	changed                      bool // the sources had uncommitted changes
}

// Version returns the module's version, and the commit and the Go version if the build
// recorded them.
func Version() string { return thisBuild().String() }

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{version: "unknown"}
	}
	return readBuild(info, commit)
}

// readBuild prefers the commit that the build recorded to the linker's.
func readBuild(info *debug.BuildInfo, commit string) build {
	b := build{version: info.Main.Version, revision: commit, goVersion: info.GoVersion}
	if b.version == "" || b.version == "(devel)" {
		b.version = "development build"
	}
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
		return b.version
	}
	return b.version + " (" + strings.Join(details, ", ") + ")"
}

// labels returns the version, the revision and the Go version, for the metric.
func (b build) labels() []string { return []string{b.version, b.revision, b.goVersion} }
