package proxy

import (
	"runtime/debug"
	"strings"
)

// commit is set by the linker (-X) where the sources are built without their
// repository, which the build itself would ask.
var commit string

// A build is what the process was built from, as far as that was recorded.
type build struct {
	version, revision, goVersion string
	changed                      bool // from sources that are no commit
}

// Version is the module's version and the commit it was built from, as far as
// the build recorded them.
func Version() string { return thisBuild().String() }

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{version: "unknown"}
	}
	return readBuild(info, commit)
}

// readBuild takes the build's own word for the commit, if there is one.
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

// labels are the version, the revision and Go's version, for the metric.
func (b build) labels() []string { return []string{b.version, b.revision, b.goVersion} }
