package handler

import (
	"bytes"
	"testing"

	"redlock-proxy/proxy/route"
)

// TestOrdinaryCommandsAreForwarded: what the router calls ordinary goes past
// everything that treats a command by its name, so nothing there may name it.
func TestOrdinaryCommandsAreForwarded(t *testing.T) {
	routes := &route.Router{Table: route.Builtin()}
	ordinary := 0
	for spec := range routes.Table.All() {
		args := bytes.Split([]byte(spec.Name), []byte("|"))
		for len(args) < max(spec.Arity, -spec.Arity) {
			args = append(args, []byte("x"))
		}
		if !routes.Route(0, args).Ordinary {
			continue
		}
		ordinary++
		if byName[spec.Name] != nil || spec.Is(route.AboutClients|route.Console|route.Subscription) {
			t.Errorf("%s is answered by the proxy, but is called ordinary", spec.Name)
		}
	}
	if ordinary < 100 {
		t.Errorf("only %d commands are ordinary", ordinary)
	}
}

// A performer whose name no row of the table has is never called.
func TestPerformersHaveRows(t *testing.T) {
	rows := map[string]bool{}
	for spec := range route.Builtin().All() {
		rows[spec.Name] = true
	}
	for name := range byName {
		if !rows[name] {
			t.Errorf("no row for %s", name)
		}
	}
}
