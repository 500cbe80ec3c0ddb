package handler

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
)

// The limit of open files is told of when it is about to matter, and once, not at
// every start of a process that will never have so many clients.
func TestOpenFilesAreToldOfWhenTheyRunOut(t *testing.T) {
	var log bytes.Buffer
	w := &fileWatch{allowed: func() (uint64, bool) { return 1000, true }, log: slog.New(slog.NewTextHandler(&log, nil))}
	limits := config.Demo().Limits
	looks := func(clients, want int) {
		t.Helper()
		log.Reset()
		w.look(clients, &limits)
		w.look(clients, &limits)
		if told := strings.Count(log.String(), "level=WARN"); told != want {
			t.Errorf("%d clients: %d warnings\n%s", clients, told, log.String())
		}
	}
	looks(0, 0)
	looks(300, 0)
	looks(360, 1)
	looks(340, 0)
	looks(360, 0)
	looks(100, 0)
	looks(360, 1)
	limits.Clients = 400
	looks(100, 0)
	looks(399, 0)
}
