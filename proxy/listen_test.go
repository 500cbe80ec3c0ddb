package proxy

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
)

func TestListenErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		taken.Addr().String():         "something else listens there already; stop it, or change listen in the configuration",
		"192.0.2.1:6380":              "this machine does not have that address; change listen in the configuration",
		"unix:" + file:                "something else listens there already",
		"unix:" + file + "/in/a/file": "cannot listen on " + file,
		"no-such-host.invalid:6380":   "cannot listen on no-such-host.invalid:6380",
	} {
		listener, err := listen("listen", address, false)
		if err == nil {
			listener.Close()
			t.Errorf("%s: no error", address)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Error("somebody's file was removed")
	}
}

// A socket that a killed process left behind is replaced, a live one is not.
func TestListenReplacesADeadSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if listener, err := listen("listen", config.UnixPrefix+path, false); err == nil {
		listener.Close()
		t.Fatal("took over a live socket")
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	first.Close()
	listener, err := listen("listen", config.UnixPrefix+path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if got := listenAddress(listener); got != config.UnixPrefix+path {
		t.Errorf("the address is %s", got)
	}
}
