package rig

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"redlock-proxy/integration/layer"
)

// ownNetwork is set in a process that has a network of its own.
const ownNetwork = "REDLOCK_OWN_NETWORK"

// A Network is a loopback of this process and its children alone, in which packets can be lost.
type Network struct{ t testing.TB }

// OwnNetwork runs the test again in a process of its own, with a network of its own, and returns nil when that has ended. In that
// process it returns the network. folder is the one of the room. Only root can do this, on Linux.
func OwnNetwork(t *testing.T, folder string) *Network {
	t.Helper()
	if os.Getenv(ownNetwork) != "" {
		n := &Network{t}
		n.run("ip", "link", "set", "lo", "up")
		return n
	}
	if out, err := exec.Command("unshare", "--net", "iptables", "-L").CombinedOutput(); err != nil {
		layer.Missing(t, "root, unshare, ip and iptables, for a network of its own: "+strings.TrimSpace(string(out)))
	}
	again := exec.Command("unshare", "--net", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=9m")
	again.Dir, again.Env = folder, append(os.Environ(), ownNetwork+"=1")
	out, err := again.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
	return nil
}

func (n *Network) run(program string, args ...string) {
	n.t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
}

// Lose drops packets that match: words of iptables, such as "--sport 7000" for what a server says.
func (n *Network) Lose(matching string) {
	n.t.Helper()
	n.run("iptables", append(strings.Fields("-A INPUT -p tcp "+matching), "-j", "DROP")...)
}

// Heal loses nothing any more.
func (n *Network) Heal() {
	n.t.Helper()
	n.run("iptables", "-F", "INPUT")
}
