package browser

import (
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

func TestMain(m *testing.M) {
	rig.Room{
		In:    layer.All,
		Needs: []rig.Program{rig.RedisServer, rig.Chromium},
	}.Main(m)
}
