package proxy

import (
	"regexp"
	"runtime/debug"
	"testing"
)

func TestDescribeBuild(t *testing.T) {
	if got := readBuild(&debug.BuildInfo{}, "").String(); got != number {
		t.Error(got)
	}
	info := &debug.BuildInfo{GoVersion: "go1.26.0"}
	if got := readBuild(info, "").String(); got != number+" (go1.26.0)" {
		t.Error(got)
	}
	if got := readBuild(info, "fedcba9876543210").String(); got != number+" (commit fedcba987654, go1.26.0)" {
		t.Error(got)
	}
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	if got := readBuild(info, "fedcba9876543210").String(); got != number+" (commit 0123456789ab with changes, go1.26.0)" {
		t.Error(got)
	}
}

// TestVersionNumber: packages and images are named by it, so it has the form of semver.org.
func TestVersionNumber(t *testing.T) {
	if !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`).MatchString(number) {
		t.Errorf("%q is no semantic version", number)
	}
}
