package operation

import (
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

func TestMain(m *testing.M) {
	rig.Room{
		In:    layer.Servers,
		Needs: []rig.Program{rig.RedisServer, rig.RedisCommand},
	}.Main(m)
}
