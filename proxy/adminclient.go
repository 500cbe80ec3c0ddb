package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// healthcheckTimeout is shorter than a container engine's usual patience.
const healthcheckTimeout = 3 * time.Second

// Healthcheck asks the process that runs with this configuration whether it
// lives. nil is yes.
func Healthcheck(ctx context.Context, cfg *Config) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	return askAdmin(ctx, cfg, http.MethodGet, "/healthz")
}

// AskReload has the process that runs with this configuration read its file
// again, as SIGHUP does, and waits for what comes of it. It is for containers,
// which have no kill. The error is the reason why the old configuration stays,
// or why nobody could be asked; what this cfg says besides the admin address
// does not matter.
func AskReload(ctx context.Context, cfg *Config) error {
	ctx, cancel := context.WithTimeout(ctx, reloadPatience+healthcheckTimeout)
	defer cancel()
	return askAdmin(ctx, cfg, http.MethodPost, "/reload")
}

// askAdmin returns nil if the admin server of cfg answers 200.
func askAdmin(ctx context.Context, cfg *Config, method, path string) error {
	if cfg.Admin == "" {
		return errors.New("the admin address is empty in the configuration, so nothing can be asked")
	}
	host, port, err := net.SplitHostPort(cfg.Admin)
	if err != nil {
		return err
	}
	// 0.0.0.0 is where to listen, not where to dial.
	if host == "::" {
		host = "::1"
	} else if everyAddress(host) {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, port) + path
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true} // no proxy of the environment in between
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		return fmt.Errorf("%s answered %s\n%s", url, response.Status, strings.TrimSpace(string(reason)))
	}
	return nil
}
