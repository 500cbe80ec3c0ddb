package operation

import (
	"os"
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

var room = rig.Room{
	In:    layer.Servers,
	Needs: []rig.Program{rig.RedisServer, rig.RedisCommand},
	Waits: true,
}

// Tests that run at once cannot set the environment, from which the proxies of some of them
// read these passwords.
const (
	passwordOfTheUpstream = "of the upstream"
	passwordOfTheReader   = "from the environment"
)

func TestMain(m *testing.M) {
	os.Setenv("UPSTREAM_PASSWORD", passwordOfTheUpstream)
	os.Setenv("READER_PASSWORD", passwordOfTheReader)
	room.Main(m)
}

func TestNeeds(t *testing.T) { room.CheckNeeds(t) }
