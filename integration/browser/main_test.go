package browser

import (
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

var room = rig.Room{
	In:    layer.Long,
	Needs: []rig.Program{rig.RedisServer, rig.Chromium},
}

func TestMain(m *testing.M) { room.Main(m) }

func TestNeeds(t *testing.T) { room.CheckNeeds(t) }
