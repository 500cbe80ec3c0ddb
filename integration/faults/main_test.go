package faults

import (
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

var room = rig.Room{
	In:    layer.Servers,
	Needs: []rig.Program{rig.RedisServer},
	Waits: true,
}

func TestMain(m *testing.M) { room.Main(m) }

func TestNeeds(t *testing.T) { room.CheckNeeds(t) }
