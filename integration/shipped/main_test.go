package shipped

import (
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

func TestMain(m *testing.M) {
	rig.Room{
		In:    layer.Servers,
		Needs: []rig.Program{rig.RedisServer, rig.SystemdAnalyze, rig.Promtool},
	}.Main(m)
}
