package handler

import (
	"bytes"
	"net"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
)

// TestOrdinaryCommandsAreForwarded: what the router calls ordinary goes past
// everything that treats a command by its name, so nothing there may name it.
func TestOrdinaryCommandsAreForwarded(t *testing.T) {
	routes := &route.Router{Table: route.Builtin()}
	env := session.NewEnv(config.NewActive(&config.Settings{Users: config.NewAccounts(config.Auth{}, 0), Router: routes, Config: config.Demo()}), nil, nil, nil)
	near, _ := net.Pipe()
	commands := New(env, Config{})
	h := commands.NewHandler(t.Context(), near)
	ordinary := 0
	check := func(spec *route.Spec) {
		args := bytes.Split([]byte(spec.Name), []byte("|"))
		for len(args) < max(spec.Arity, -spec.Arity) {
			args = append(args, []byte("x"))
		}
		to := routes.Route(0, args)
		if !to.Ordinary {
			return
		}
		ordinary++
		if cmd := (wire.Command{Args: args}); h.performHandshake(spec.Name, cmd, spec) || h.performJoined(spec.Name, cmd, to) || spec.Name == "watch" || spec.Is(route.AboutClients|route.Console) {
			t.Errorf("%s is answered by the proxy, but is called ordinary", spec.Name)
		}
	}
	for spec := range routes.Table.All() {
		check(spec)
	}
	if ordinary < 100 {
		t.Errorf("only %d commands are ordinary", ordinary)
	}
}
