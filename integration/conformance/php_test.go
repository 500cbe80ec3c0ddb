package conformance

import (
	"fmt"
	"os/exec"
	"testing"

	"redlock-proxy/integration/rig"
)

// TestPHPHearsOfADeadUpstream: phpredis answers false to an ERR, which a cache takes for a
// miss. It throws an exception for NOUPSTREAM. Locks go on.
func TestPHPHearsOfADeadUpstream(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.PHP, rig.Phpredis)
	c := rig.StartCluster(t, rig.Options{})
	c.Upstream.Kill()
	const script = `
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1]);
try { var_dump($redis->get('plain')); } catch (RedisException $error) { echo $error->getMessage(), "\n"; }
var_dump($redis->set('lock:php', 'a token of sixteen bytes', ['nx', 'px' => 60000]));`
	out, err := exec.Command("php", "-r", script, fmt.Sprint(c.Proxy.Port)).CombinedOutput()
	const want = "NOUPSTREAM the upstream server of this proxy cannot be reached (deploy/INCIDENTS.md#noupstream)\nbool(true)\n"
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%s", err, out)
	}
}
