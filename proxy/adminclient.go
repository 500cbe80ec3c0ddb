package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"redlock-proxy/proxy/config"
)

// healthcheckTimeout is shorter than a container engine's usual patience.
const healthcheckTimeout = 3 * time.Second

// Healthcheck asks the process that runs with the configuration file at path
// whether it lives. nil is yes. An empty path means what it means for Load. Of
// the file only the admin address is read, as far as it can be: what else is
// wrong there, or in the files that it names, does not end a process that serves.
func Healthcheck(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	_, err := askAdmin(ctx, adminAddress(path), http.MethodGet, "/healthz")
	return err
}

// adminAddress is the admin address in a configuration file that may be in any
// state, and where it shows none the default.
func adminAddress(path string) string {
	text, err := os.ReadFile(cmp.Or(path, config.DefaultFile))
	if err != nil {
		return config.Demo().Admin
	}
	var file struct{ Admin *string }
	if yaml.Unmarshal(text, &file) != nil || file.Admin == nil {
		if line := adminLine.FindSubmatch(text); line != nil {
			found := string(line[1])
			file.Admin = &found
		}
	}
	if file.Admin != nil {
		if address := *file.Admin; config.CheckListen(address, false) == nil {
			return address
		}
	}
	return config.Demo().Admin
}

// adminLine finds the address in a file that is no YAML.
var adminLine = regexp.MustCompile(`(?m)^admin:[ \t]*["']?([^\s"'#]*)`)

// AskReload has the process that runs with this configuration read its file
// again, as SIGHUP does, and waits for what comes of it. It is for containers,
// which have no kill, and the only way to move keys with the lock rules
// (moveKeys). The report is for people. The error is the reason why the old
// configuration stays, or why nobody could be asked; what this cfg says besides
// the admin address does not matter.
func AskReload(ctx context.Context, cfg *config.Config, moveKeys bool) (report string, err error) {
	ctx, cancel := context.WithTimeout(ctx, reloadPatience+healthcheckTimeout)
	defer cancel()
	path := "/reload"
	if moveKeys {
		path += "?" + moveKeysParameter
	}
	return askAdmin(ctx, cfg.Admin, http.MethodPost, path)
}

// askAdmin returns what the admin server at an address to listen on answers with
// 200.
func askAdmin(ctx context.Context, admin, method, path string) (answer string, err error) {
	if admin == "" {
		return "", errors.New("the admin address is empty in the configuration, so nothing can be asked")
	}
	host, port, err := net.SplitHostPort(admin)
	if err != nil {
		return "", err
	}
	// 0.0.0.0 is where to listen, not where to dial.
	if host == "::" {
		host = "::1"
	} else if config.EveryAddress(host) {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, port) + path
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{DisableKeepAlives: true} // no proxy of the environment in between
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	answer = strings.TrimSpace(string(text))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s\n%s", url, response.Status, answer)
	}
	return answer, nil
}
