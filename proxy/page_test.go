package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
)

// A whole proxy shows its masters with their latency, its clients and what
// locks came to. Its events end when it drains, and do not delay the end.
func TestStatusOfAWholeProxy(t *testing.T) {
	cfg := config.Demo()
	cfg.MasterTimeout = patience // a busy machine is no failed master
	p, stop := startWholeProxy(t, cfg)
	waitReady(t, p)
	base := "http://" + p.web.Addr().String()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	events, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	client := redis.NewClient(&redis.Options{Addr: p.listener.Addr().String(), MaxRetries: -1})
	defer client.Close()
	for range 2 { // the second is refused
		client.SetNX(t.Context(), "lock:a", "me", time.Minute)
	}
	var status struct {
		Health, Version string
		Clients         int
		Masters         []struct {
			Name, State string
			VoteMS      *float64 `json:"vote_ms"`
		}
		Commands struct{ Granted, Refused int64 } `json:"lock_commands"`
		Notes    []string
	}
	eventually(t, "all masters have voted, and show it", func() bool {
		_, body := fetch(t, base+"/status.json")
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Fatal(err)
		}
		for _, m := range status.Masters {
			if m.State != "voting" || m.VoteMS == nil {
				return false
			}
		}
		return status.Health == "whole" && status.Commands.Granted == 1 && status.Commands.Refused == 1
	})
	if status.Version != Version() || status.Clients != 1 || len(status.Masters) != 5 || len(status.Notes) != 2 {
		t.Errorf("the status is %+v", status)
	}
	eventually(t, "the lock is listed", func() bool {
		_, body := fetch(t, base+"/locks.json?search=k:a")
		return strings.Contains(body, `"key":"lock:a","db":0,"type":"string"`) && strings.Contains(body, `"holder":{"client":"127.0.0.1:`)
	})
	client.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
	heard, err := io.ReadAll(events.Body)
	if err != nil || !strings.Contains(string(heard), `"health":"draining"`) {
		t.Errorf("the events end with %v:\n%.2000s", err, heard)
	}
}
