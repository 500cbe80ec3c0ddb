package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/inspect"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock/resp"
)

// healthcheckTimeout is shorter than the usual timeout of a container engine's check.
const healthcheckTimeout = 3 * time.Second

// Healthcheck asks the process that runs with the configuration file at path, or at another admin address,
// whether it is alive, and returns nil if it is. An empty path means the default file, as for config.Load.
// It reads only the admin address: other mistakes in the file, or in files that it names, must kill no
// running process.
func Healthcheck(ctx context.Context, path, admin string) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	_, err := askAdmin(ctx, cmp.Or(admin, adminAddress(path)), http.MethodGet, "/healthz")
	return err
}

// adminAddress returns the admin address in a configuration file. The file may be missing
// or broken. It returns the default address if it finds none.
func adminAddress(path string) string {
	text, err := os.ReadFile(cmp.Or(path, config.DefaultFile))
	if err != nil {
		return config.Demo().Admin
	}
	var file struct{ Admin *string }
	if yaml.Unmarshal(text, &file) != nil || file.Admin == nil {
		if line := adminLine.FindSubmatch(text); line != nil {
			file.Admin = new(string(line[1]))
		}
	}
	if file.Admin != nil {
		if address := *file.Admin; config.CheckListen(address, false) == nil {
			return address
		}
	}
	return config.Demo().Admin
}

// adminLine finds the address in a file that is not valid YAML.
var adminLine = regexp.MustCompile(`(?m)^admin:[ \t]*["']?([^\s"'#]*)`)

// AskReload asks the process at cfg's admin address to read its file again, as SIGHUP does, and waits
// for the result. It is for containers, which have no kill, and the only way to move keys with the lock
// rules (moveKeys). The report is for people. The error says why the old configuration stays active, or
// why the process could not be asked. AskReload uses only the admin address of cfg.
func AskReload(ctx context.Context, cfg *config.Config, moveKeys bool) (report string, err error) {
	ctx, cancel := context.WithTimeout(ctx, reloadPatience+healthcheckTimeout)
	defer cancel()
	path := "/reload"
	if moveKeys {
		path += "?" + moveKeysParameter
	}
	return askAdmin(ctx, cfg.Admin, http.MethodPost, path)
}

// Check is inspect.Check with what a running proxy knows: keys that look like locks and match no rule of cfg. It asks
// the process at cfg's admin address, if there is one.
func Check(ctx context.Context, cfg *config.Config, all bool) inspect.Report {
	r := inspect.Check(ctx, cfg, all)
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	text, err := askAdmin(ctx, cfg.Admin, http.MethodGet, "/status.json")
	var running struct {
		Unruled []struct {
			Pattern, Rule string
			Uses          int64
		}
	}
	if err != nil || json.Unmarshal([]byte(text), &running) != nil {
		return r // most often no proxy runs yet
	}
	for _, found := range running.Unruled {
		pattern := []byte(found.Pattern)
		matches := func(glob string) bool { return resp.GlobMatch(glob, pattern) }
		if cfg.Locks.Covers(route.AnyDB, pattern) || slices.ContainsFunc(cfg.Ignore, matches) {
			continue
		}
		r.Hazards = append(r.Hazards, inspect.Hazard{
			Hazard: events.Hazard{Kind: "unruled", Detail: found.Pattern},
			Text: fmt.Sprintf("%s: the running proxy has seen keys like these used as locks (%s), and no rule matches them, so they are on the upstream alone; add to locks: %s",
				found.Pattern, config.Plural(int(found.Uses), "time"), found.Rule),
		})
	}
	return r
}

// askAdmin asks the server that listens on admin. It returns the body of a 200, or else an error.
func askAdmin(ctx context.Context, admin, method, path string) (answer string, err error) {
	if admin == "" {
		return "", errors.New("admin is empty in the configuration, so the running proxy cannot be asked")
	}
	host, port, err := net.SplitHostPort(admin)
	if err != nil {
		return "", err
	}
	// A server can listen on 0.0.0.0, but nobody can dial it.
	if host == "::" {
		host = "::1"
	} else if config.EveryAddress(host) {
		host = "127.0.0.1"
	}
	address := net.JoinHostPort(host, port)
	request, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set(reloadHeader, "1")
	transport := &http.Transport{DisableKeepAlives: true} // and no HTTP proxy of the environment
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		err = errors.Unwrap(err) // without the method and the URL
		return "", fmt.Errorf("no proxy answers at its admin address %s: %w; start it, or correct admin in the configuration", address, err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	answer = strings.TrimSpace(string(text))
	switch response.StatusCode {
	case http.StatusOK:
		return answer, nil
	case http.StatusConflict:
		return "", errors.New("the running proxy refused the reload, and its old configuration stays active\n" + answer)
	}
	return "", fmt.Errorf("%s answered %s to %s\n%s", address, response.Status, path, answer)
}
