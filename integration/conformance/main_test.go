package conformance

import (
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

func TestMain(m *testing.M) {
	rig.Room{
		In:    layer.Servers,
		Needs: []rig.Program{rig.RedisServer, rig.RedisCommand, rig.PHP, rig.Phpredis, rig.Predis, rig.Java, rig.Maven, rig.Python},
		More:  []rig.Program{rig.ValkeyServer, rig.Node, rig.NPM, rig.Ruby, rig.RubyRedis, rig.Compiler, rig.Cargo},
	}.Main(m)
}
