package proxy

import (
	"runtime/debug"
	"testing"
)

func TestDescribeBuild(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0"}
	if got := readBuild(info, "").String(); got != "development build (go1.26.0)" {
		t.Error(got)
	}
	if got := readBuild(info, "fedcba9876543210").String(); got != "development build (commit fedcba987654, go1.26.0)" {
		t.Error(got)
	}
	info.Main.Version = "v1.2.3"
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	if got := readBuild(info, "fedcba9876543210").String(); got != "v1.2.3 (commit 0123456789ab with changes, go1.26.0)" {
		t.Error(got)
	}
}
