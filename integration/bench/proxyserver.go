package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/child"
)

const (
	shippedTimeout  = 50 * time.Millisecond
	generousTimeout = time.Second
)

func buildProxy(ctx context.Context, into string, flags ...string) (string, error) {
	binary := filepath.Join(into, "redlock-proxy")
	args := append([]string{"build", "-o", binary}, flags...)
	output, err := exec.CommandContext(ctx, "go", append(args, "redlock-proxy")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the proxy: %w\n%s", err, output)
	}
	return binary, nil
}

// proxyConfig is the part of the proxy's configuration that sections vary.
type proxyConfig struct {
	masters       []string // addresses
	upstream      string
	masterTimeout time.Duration
	connections   string // upstream_connections; "": the default
}

func (c proxyConfig) yaml(port, admin int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "listen: %s\nadmin: %s\nupstream: redis://%s\nmasters:\n", child.Loopback(port), child.Loopback(admin), c.upstream)
	for _, master := range c.masters {
		fmt.Fprintf(&text, "  - redis://%s\n", master)
	}
	if c.connections != "" {
		fmt.Fprintf(&text, "upstream_connections: %s\n", c.connections)
	}
	fmt.Fprintf(&text, "locks: [{match: \"lock:*\"}]\nmaster_timeout: %s\nlimits: {clients: 20000}\nlog: {level: warn}\n", c.masterTimeout)
	return text.String()
}

// proxyServer is a running proxy.
type proxyServer struct {
	*child.Process
	port, admin int
}

func (p *proxyServer) addr() string { return child.Loopback(p.port) }

// startProxy starts the binary and waits until it is ready. It is killed when the section
// ends.
func (b *bench) startProxy(ctx context.Context, config proxyConfig) *proxyServer {
	p := &proxyServer{port: must(child.FreePort()), admin: must(child.FreePort())}
	file := filepath.Join(b.scratch, fmt.Sprintf("proxy-%d.yaml", p.port))
	check(os.WriteFile(file, []byte(config.yaml(p.port, p.admin)), 0o600))
	p.Process = must(child.Start("the proxy", b.binary, "-config", file, "-new"))
	b.atEnd(p.Kill)
	untilServing(ctx, p.Process, p.ready)
	return p
}

func (p *proxyServer) ready(ctx context.Context) error {
	answer, err := p.ask(ctx, "/readyz")
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (p *proxyServer) ask(ctx context.Context, path string) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+child.Loopback(p.admin)+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err == nil && answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("%s answers %s", path, answer.Status)
	}
	return answer, err
}

// metrics are the values of the proxy's series, by name with labels.
type metrics map[string]float64

func (p *proxyServer) metrics(ctx context.Context) (metrics, error) {
	answer, err := p.ask(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	read := metrics{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		series, text, _ := cutLast(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil && !strings.HasPrefix(series, "#") {
			read[series] = value
		}
	}
	return read, nil
}

// sum adds up the series of this name that have all of the labels, such as `kind="acquire"`.
func (m metrics) sum(name string, labels ...string) float64 {
	var total float64
next:
	for series, value := range m {
		if own, _, _ := strings.Cut(series, "{"); own != name {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(series, label) {
				continue next
			}
		}
		total += value
	}
	return total
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
