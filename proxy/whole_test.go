package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/integration/testca"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
)

// Scripts in testdata/whole/*.txt run a whole proxy with a file, over real servers. In them $s1 is the socket of a server,
// which starts when it is first named, $alias1 another name of it, $taken an address that is in use, and $cert1 and $key1 are
// files of a certificate. FILE and TIME stand for what differs between two runs. The events are
//
//	| upstream: $s1        a line of the file
//	s1 starts --cluster-enabled yes
//	starts [-new]          a proxy with this file. Clients connect to the last one
//	ready                  (awaited) enough masters vote
//	reload [-move-keys]    of the file
//	5s => 6s               a reload of the file with another text in place of one. "as before": of the first one
//	a: GET k | PING        a client sends commands in one piece, and is answered
//	metric set_epoch, readyz, info moving, log quorum, banner new
//	                       the lines of these that contain the text, polled until they are the recorded ones
//	level, hash            of the log; whether the metric is as it was when this was asked before
//	HTTP fails             three times, as net/http says it
//	the file is removed
//	certificate            the one that the proxy shows
//	ends                   the proxy
func TestWholeProxies(t *testing.T) {
	t.Parallel() // it waits most of its time
	datatest.Play(t, "testdata/whole/*.txt", func(t *testing.T, told *datatest.Script) {
		s := &wholeScript{Script: told, t: t, servers: map[string]*proxytest.Redis{}, clients: map[string]*testClient{}, seen: map[string]int{}}
		s.file = filepath.Join(t.TempDir(), "config.yaml")
		for event := range told.Events {
			if line, isText := strings.CutPrefix(event, "| "); isText {
				s.text += s.filledIn(line) + "\n"
				continue
			}
			s.do(event, strings.Fields(event))
		}
		for len(s.stops) > 0 {
			s.stop()
		}
	})
}

type wholeScript struct {
	*datatest.Script
	*Proxy
	t          *testing.T
	file, text string
	servers    map[string]*proxytest.Redis
	masks      []string // what is masked, and by what
	authority  *testca.Authority
	issued     []testca.Certificate
	clients    map[string]*testClient
	log        *proxytest.Log
	seen       map[string]int // how many lines of the log a question has had
	stops      []func() error
	hash       []string
}

var holes = regexp.MustCompile(`\$(s|alias|cert|key|taken)(\d*)`)

// filledIn is a text with what its names stand for.
func (s *wholeScript) filledIn(text string) string {
	return holes.ReplaceAllStringFunc(text, func(hole string) string {
		if i := slices.Index(s.masks, hole); i > 0 {
			return s.masks[i-1]
		}
		kind, number := holes.FindStringSubmatch(hole)[1], holes.FindStringSubmatch(hole)[2]
		is := ""
		switch kind {
		case "s":
			s.servers["s"+number] = proxytest.StartRedis(s.t)
			is = s.servers["s"+number].Socket
		case "alias":
			is = filepath.Join(filepath.Dir(s.servers["s"+number].Socket), "alias")
			if err := os.Symlink(s.servers["s"+number].Socket, is); err != nil {
				s.t.Fatal(err)
			}
		case "taken":
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				s.t.Fatal(err)
			}
			s.t.Cleanup(func() { listener.Close() })
			is = listener.Addr().String()
		default:
			if s.authority == nil {
				s.authority = testca.New(s.t)
			}
			one := s.authority.Issue(30 * 24 * time.Hour)
			s.issued = append(s.issued, one)
			s.masks = append(s.masks, one.CertFile, "$cert"+number, one.KeyFile, "$key"+number)
			is = s.masks[slices.Index(s.masks, hole)-1]
			return is
		}
		s.masks = append(s.masks, is, hole)
		return is
	})
}

// differs finds what is another thing in each run.
var differs = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\b\d\.\d+e\+09`), "TIME"},
	{regexp.MustCompile(`(127\.0\.0\.1:| -p )\d{2,}`), "${1}PORT"},
	{regexp.MustCompile(`\b(set=|run_id )[0-9a-f]+`), "${1}ID"},
}

func (s *wholeScript) masked(text string) string {
	text = strings.ReplaceAll(text, s.file, "FILE")
	for i := 0; i < len(s.masks); i += 2 {
		text = strings.ReplaceAll(text, s.masks[i], s.masks[i+1])
	}
	for _, d := range differs {
		text = d.pattern.ReplaceAllString(text, d.instead)
	}
	return text
}

func (s *wholeScript) do(event string, words []string) {
	from, to, isChange := strings.Cut(event, " => ")
	name, commands, isSaid := strings.Cut(event, ": ")
	_, rest, _ := strings.Cut(event, " ")
	switch {
	case isChange:
		unescape := strings.NewReplacer(`\n`, "\n")
		s.write(strings.Replace(s.text, s.filledIn(unescape.Replace(from)), s.filledIn(unescape.Replace(to)), 1))
		s.reload(false)
	case event == "as before":
		s.write(s.text)
		s.reload(false)
	case words[0] == "reload":
		s.reload(rest == "-move-keys")
	case words[0] == "starts":
		s.write(s.text)
		s.start(rest == "-new")
	case event == "ready":
		waitReady(s.t, s.Proxy)
	case event == "ends":
		s.stop()
	case event == "level":
		s.Printf("%s", s.level.Level())
	case event == "hash":
		now := s.shown("metric", "redlock_config_hash")
		if s.hash != nil {
			s.Printf("the same as before: %v", slices.Equal(now, s.hash))
		}
		s.hash = now
	case event == "HTTP fails":
		for range 3 {
			s.admin.http.ErrorLog.Print("the HTTP server's own line")
		}
	case event == "the file is removed":
		if err := os.Remove(s.file); err != nil {
			s.t.Fatal(err)
		}
	case event == "certificate":
		conn, err := tls.Dial("tcp", s.tlsListener.Addr().String(), &tls.Config{RootCAs: s.authority.Pool(), ServerName: "localhost"})
		if err != nil {
			s.t.Fatal(err)
		}
		defer conn.Close()
		for _, one := range s.issued {
			if conn.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(one.Serial) == 0 {
				s.Printf("%s", s.masked(one.CertFile))
			}
		}
	case isSaid:
		s.says(name, strings.Split(commands, " | "))
	case len(words) > 1 && words[1] == "starts":
		server := proxytest.StartRedis(s.t, words[2:]...)
		s.servers[words[0]] = server
		s.masks = append(s.masks, server.Socket, "$"+words[0])
	default:
		s.asks(words[0], rest)
	}
}

func (s *wholeScript) write(text string) {
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *wholeScript) start(isNew bool) {
	cfg, err := config.Load(s.file, config.Flags{})
	if err != nil {
		s.t.Fatal(err)
	}
	cfg.NewSet = isNew
	s.log = &proxytest.Log{}
	log, level := config.NewLogger(cfg, s.log)
	p, err := New(cfg, log, level, prometheus.NewRegistry())
	if err != nil {
		s.Printf("%s", s.masked(err.Error()))
		return
	}
	s.Proxy = p
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx) }()
	s.stops = append(s.stops, func() error { cancel(); return <-ended })
	s.clients = map[string]*testClient{}
}

// stop ends the last proxy.
func (s *wholeScript) stop() {
	last := len(s.stops) - 1
	if err := s.stops[last](); err != nil {
		s.t.Errorf("Serve: %v", err)
	}
	s.stops = s.stops[:last]
}

func (s *wholeScript) reload(moves bool) {
	report, err := s.Reload(s.t.Context(), moves)
	if err != nil {
		report = err.Error()
	}
	s.Printf("%s", s.masked(report))
}

func (s *wholeScript) says(name string, commands []string) {
	c := s.clients[name]
	if c == nil {
		c = dialTest(s.t, "tcp", s.listener.Addr().String())
		s.clients[name] = c
	}
	c.send(strings.Join(commands, "\r\n") + "\r\n")
	_ = c.SetReadDeadline(time.Now().Add(patience))
	var unread []byte
	for range commands {
		line, rest := proxytest.Show(unread)
		for buf := make([]byte, 4096); line == ""; line, rest = proxytest.Show(unread) {
			n, err := c.Read(buf)
			if unread = append(unread, buf[:n]...); err != nil {
				s.t.Fatalf("%s is answered %q, %v", commands, unread, err)
			}
		}
		unread = rest
		s.Printf("%s", s.masked(line))
	}
}

// asks prints what is shown, as soon as it is what is recorded.
func (s *wholeScript) asks(what, text string) {
	var lines []string
	isRecorded := func() bool {
		lines = s.shown(what, text)
		return slices.Equal(lines, s.Recorded())
	}
	if datatest.Rewriting() {
		time.Sleep(3 * time.Second)
	}
	for deadline := time.Now().Add(patience); !isRecorded() && !datatest.Rewriting() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	s.seen[what+text] += len(lines)
	for _, line := range lines {
		s.Printf("%s", line)
	}
}

func (s *wholeScript) shown(what, text string) (lines []string) {
	body := ""
	web := func(path string) string {
		status, body := fetch(s.t, "http://"+s.web.Addr().String()+path)
		return fmt.Sprintf("%d %s", status, body)
	}
	switch what {
	case "metric":
		_, body, _ = strings.Cut(web("/metrics"), "\n")
		body = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(body, "")
	case "readyz":
		body = web("/readyz")
	case "info":
		body = strings.ReplaceAll(string(s.appendInfo(nil)), "\r\n", "\n")
	case "log":
		body = regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(s.log.String(), "")
	case "banner":
		body = s.Banner()
	default:
		s.t.Fatalf("what is that? %s", what)
	}
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(s.masked(line)); strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	if what == "metric" { // whose order is that of the sockets
		slices.Sort(lines)
	}
	if what == "log" {
		lines = lines[min(len(lines), s.seen[what+text]):]
	}
	return lines
}
