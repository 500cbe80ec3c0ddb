package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asMain makes the test binary the program itself.
const asMain = "REDLOCK_PROXY_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// program returns a command that runs the program.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), binary, args...)
	c.Env = append(os.Environ(), asMain+"=1")
	return c
}

// Flags that ask for two things are refused. Else one of them would be left out without a word.
func TestFlagsThatExcludeEachOther(t *testing.T) {
	for flags, want := range map[string]string{
		"-check -reload":       "-check, -reload and -healthcheck exclude each other",
		"-check -healthcheck":  "-check, -reload and -healthcheck exclude each other",
		"-reload -healthcheck": "-check, -reload and -healthcheck exclude each other",
		"-new -reload":         "-new is for the first start",
		"-new -healthcheck":    "-new is for the first start",
		"-move-keys":           "-move-keys needs -reload",
		"-json":                "-all and -json need -check",
		"-demo -config x":      "-demo reads no configuration",
		"-demo -admin :9381":   "-demo reads no configuration",
		"-admin 9381":          "-admin: \"9381\" is not an address",
		"check":                "unexpected argument \"check\"",
	} {
		c := program(t, strings.Fields(flags)...)
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(string(out), want) {
			t.Errorf("%s: exit code %d, want %d\n%s", flags, code, exitUsage, out)
		}
	}
}

// The proxy goes on when the program that reads its log has ended.
func TestALogThatNobodyReadsEndsNoProxy(t *testing.T) {
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("listen: unix:%s\nadmin: \"\"\nupstream: none\nmasters: embedded\nauth: {password: right}\n", socket)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := program(t, "-config", file)
	c.Stderr = stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	stderr.Close()
	lines := bufio.NewReader(log)
	for line := ""; !strings.Contains(line, "msg=serving"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	log.Close()
	client, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.SetDeadline(time.Now().Add(time.Minute))
	replies := bufio.NewReader(client)
	for range 3 { // each refused login is a line of the log
		fmt.Fprint(client, "AUTH wrong\r\n")
		if reply, err := replies.ReadString('\n'); err != nil || !strings.HasPrefix(reply, "-WRONGPASS") {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	fmt.Fprint(client, "AUTH right\r\n")
	if reply, err := replies.ReadString('\n'); err != nil || reply != "+OK\r\n" {
		t.Fatalf("%q, %v", reply, err)
	}
	// Its own ending is orderly, too.
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, replies); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the proxy ended with %v", err)
	}
}

// Whoever started the program hears on the socket in NOTIFY_SOCKET that clients can connect.
func TestTellsThatItIsReady(t *testing.T) {
	dir := t.TempDir()
	told, err := net.ListenPacket("unixgram", filepath.Join(dir, "n"))
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	file := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("listen: unix:%s\nadmin: \"\"\nupstream: none\nmasters: embedded\n", filepath.Join(dir, "s"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := program(t, "-config", file)
	c.Env = append(c.Env, "NOTIFY_SOCKET="+told.LocalAddr().String())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	told.SetReadDeadline(time.Now().Add(time.Minute))
	message := make([]byte, 100)
	if n, _, err := told.ReadFrom(message); err != nil || string(message[:n]) != "READY=1" {
		t.Fatalf("%q, %v", message[:n], err)
	}
	client, err := net.Dial("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
}
