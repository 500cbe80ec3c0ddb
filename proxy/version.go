package proxy

import (
	"runtime/debug"
	"strings"
)

// commit is set by the linker (-X) where the sources are built without their
// repository, which the build itself would ask.
var commit string

// Version is the module's version and the commit it was built from, as far as
// the build recorded them.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describeBuild(info, commit)
}

// describeBuild takes the build's own word for the commit, if there is one.
func describeBuild(info *debug.BuildInfo, commit string) string {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "development build"
	}
	details := []string{info.GoVersion}
	if recorded := settings["vcs.revision"]; recorded != "" {
		commit = recorded
	}
	if commit != "" {
		text := "commit " + commit[:min(len(commit), 12)]
		if settings["vcs.modified"] == "true" {
			text += " with changes"
		}
		details = append([]string{text}, details...)
	}
	return version + " (" + strings.Join(details, ", ") + ")"
}
