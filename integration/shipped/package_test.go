package shipped

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// debian is a folder into which dpkg installs, and programs that stand for systemd's: there is no
// systemd here that would run units. They write down what the package asks of them.
type debian struct {
	t          *testing.T
	root, fake string
}

func newDebian(t *testing.T) debian {
	d := debian{t, t.TempDir(), t.TempDir()}
	for _, dir := range []string{"etc", "run/systemd/system", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(d.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.write(filepath.Join(d.root, "var/lib/dpkg/status"), "")
	for _, program := range []string{"systemctl", "deb-systemd-invoke"} {
		d.write(filepath.Join(d.fake, program), `#!/bin/sh
echo "$(basename "$0") $*" >>"$(dirname "$0")/asked"
case "$*" in
*list-units*) printf '%s loaded active running proxy\n' redlock-proxy@9380.service redlock-proxy@9381.service ;;
esac
`)
	}
	return d
}

func (d debian) write(path, text string) {
	d.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// dpkg runs it on the folder. The scripts of the package run on this machine and are told the folder.
func (d debian) dpkg(args ...string) {
	d.t.Helper()
	cmd := exec.Command("dpkg", append([]string{"--root=" + d.root, "--force-script-chrootless", "--force-depends"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+d.fake+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("dpkg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// asked returns what the package has asked of systemd since the last call.
func (d debian) asked() string {
	d.t.Helper()
	path := filepath.Join(d.fake, "asked")
	defer os.Remove(path)
	text, err := os.ReadFile(path)
	if err != nil {
		d.t.Error(err)
	}
	return string(text)
}

func (d debian) has(path string) bool {
	_, err := os.Stat(filepath.Join(d.root, path))
	return err == nil
}

// build makes a package of these sources with deploy/build.sh.
func build(t *testing.T) string {
	t.Helper()
	arch, err := exec.Command("dpkg", "--print-architecture").Output()
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	cmd := exec.Command("../deploy/build.sh", "deb")
	cmd.Env = append(os.Environ(), "OUT="+into, "ARCH="+strings.TrimSpace(string(arch)), "MAINTAINER=Some Body <some.body@debian.org>")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("deploy/build.sh: %v\n%s", err, out)
	}
	built, err := filepath.Glob(into + "/*.deb")
	if err != nil || len(built) != 1 {
		t.Fatalf("it has made %v: %v", built, err)
	}
	return built[0]
}

// renumbered returns the same package as one of another version.
func renumbered(t *testing.T, deb, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "package")
	run := func(args ...string) {
		if out, err := exec.Command("dpkg-deb", args...).CombinedOutput(); err != nil {
			t.Fatalf("dpkg-deb %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("--raw-extract", deb, dir)
	control := filepath.Join(dir, "DEBIAN/control")
	text := regexp.MustCompile(`(?m)^Version: .*$`).ReplaceAllString(rig.ReadFile(t, control), "Version: "+version)
	if err := os.WriteFile(control, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run("--root-owner-group", "-Zgzip", "-z1", "--build", dir, dir+".deb")
	return dir + ".deb"
}

// TestDebianPackage builds the package, and installs, upgrades and removes it in a folder. The proxy
// from it does not start before its servers are named. While a lock is held, the package is upgraded and
// the proxy restarted, which the package asks of systemd for one instance after the other. The lock is
// still held then, and the configuration is the operator's.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Dpkg, rig.Lintian, rig.SystemdAnalyze)
	if os.Getuid() != 0 {
		layer.Missing(t, "root, as dpkg does")
	}
	first := build(t)
	second := renumbered(t, first, "99.0.0")
	if out, err := exec.Command("lintian", "--allow-root", "--fail-on", "error,warning", first).CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
	if name := filepath.Base(first); !strings.HasPrefix(name, "redlock-proxy_"+ownNumber(t)+"_") {
		t.Errorf("%s is a package of this version", name)
	}

	d := newDebian(t)
	d.dpkg("--install", first)
	users := rig.ReadFile(t, filepath.Join(d.root, "etc/passwd"))
	user := regexp.MustCompile(`(?m)^redlock-proxy:[^:]*:\d+:(\d+):`).FindStringSubmatch(users)
	config := filepath.Join(d.root, "etc/redlock-proxy/config.yaml")
	if shown, err := exec.Command("stat", "-c", "%a %u %g", config).Output(); user == nil || err != nil || strings.TrimSpace(string(shown)) != "640 0 "+user[1] {
		t.Errorf("the configuration has the mode and owners %s; the users are %s", shown, users)
	}
	for _, name := range []string{"redlock-proxy.service", "redlock-proxy@.service"} {
		unit := rig.ReadFile(t, filepath.Join(d.root, "usr/lib/systemd/system", name))
		if !strings.Contains(unit, "ExecStart=/usr/bin/redlock-proxy -config /etc/redlock-proxy/config.yaml") || regexp.MustCompile(`(?m)^Exec.*-new`).MatchString(unit) {
			t.Errorf("%s does not start the proxy as it should:\n%s", name, unit)
		}
		judgeUnit(t, strings.Replace(name, "@", "@9380", 1), strings.ReplaceAll(unit, "/usr/bin/redlock-proxy", rig.ProxyBinary))
	}
	binary := filepath.Join(d.root, "usr/bin/redlock-proxy")
	if out, err := exec.Command(binary, "-config", config).CombinedOutput(); err == nil || !strings.Contains(string(out), "upstream") {
		t.Errorf("without servers in its configuration it answers %v: %s", err, out)
	}
	if page, err := exec.Command("gunzip", "-c", filepath.Join(d.root, "usr/share/man/man8/redlock-proxy.8.gz")).Output(); err != nil || !bytes.Contains(page, []byte("\n.B \\-healthcheck\n")) {
		t.Errorf("the manual page is %.500s (%v)", page, err)
	}

	servers := []*rig.Server{rig.StartServer(t, "upstream")}
	for i := range 3 {
		servers = append(servers, rig.StartServer(t, fmt.Sprintf("master%d", i+1)))
	}
	p := &rig.Proxy{Port: rig.FreePort(t), Admin: rig.FreePort(t), Binary: binary, Flags: []string{"-config", config, "-new"}}
	mine := fmt.Sprintf("listen: 127.0.0.1:%d\nadmin: 127.0.0.1:%d\nupstream: %s\nmasters: [%s, %s, %s]\n",
		p.Port, p.Admin, servers[0].URL(), servers[1].URL(), servers[2].URL(), servers[3].URL())
	d.write(config, mine)
	p.Start(t)
	t.Cleanup(func() { p.Finish(t) })
	rig.WaitFor(t, "the proxy is ready", p.Ready)
	client := p.Client(t)
	rig.MustAcquire(t, client, "lock:held", "token-of-the-holder", rig.LongTTL)
	d.asked()

	d.dpkg("--install", second)
	if asked, want := d.asked(), `systemctl --system daemon-reload
systemctl list-units --plain --no-legend --state=active redlock-proxy.service redlock-proxy@*.service
deb-systemd-invoke restart redlock-proxy@9380.service
deb-systemd-invoke restart redlock-proxy@9381.service
`; asked != want {
		t.Errorf("an upgrade asks of systemd:\n%s", asked)
	}
	rig.MustAcquire(t, client, "lock:taken-before-the-restart", "token-of-the-holder", rig.LongTTL)
	if code, err := p.Proc.Stop(rig.Patience); code != 0 || err != nil {
		t.Fatalf("it ended with %d: %v", code, err)
	}
	p.Flags = p.Flags[:2] // -new is for the first start
	p.Start(t)
	rig.WaitFor(t, "the proxy is ready after the upgrade", p.Ready)
	for _, key := range []string{"lock:held", "lock:taken-before-the-restart"} {
		if ok, err := rig.Acquire(t.Context(), client, key, "token-of-another-client", rig.LongTTL); ok || err != nil {
			t.Errorf("%s was lost in the upgrade: %v %v", key, ok, err)
		}
		rig.MustRelease(t, client, key, "token-of-the-holder")
	}
	if kept := rig.ReadFile(t, config); kept != mine {
		t.Errorf("the upgrade has changed the configuration:\n%s", kept)
	}

	d.dpkg("--remove", "redlock-proxy")
	if asked := d.asked(); !strings.HasPrefix(asked, "deb-systemd-invoke stop redlock-proxy.service redlock-proxy@*.service\n") {
		t.Errorf("the removal asks of systemd:\n%s", asked)
	}
	if d.has("usr/bin/redlock-proxy") || !d.has("etc/redlock-proxy/config.yaml") {
		t.Error("a removal must leave the configuration, and nothing else")
	}
	d.dpkg("--purge", "redlock-proxy")
	if d.has("etc/redlock-proxy") {
		t.Error("a purge has left the configuration")
	}
}

// ownNumber returns the version of these sources.
func ownNumber(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(rig.ProxyBinary, "-version").Output()
	number := regexp.MustCompile(`^redlock-proxy (\d+\.\d+\.\d+) `).FindSubmatch(out)
	if err != nil || number == nil {
		t.Fatalf("-version: %v, %s", err, out)
	}
	return string(number[1])
}

// TestImageTellsItsVersion: the number in the Dockerfile is the program's.
func TestImageTellsItsVersion(t *testing.T) {
	t.Parallel()
	if said, own := rig.ReadFile(t, "../Dockerfile"), ownNumber(t); !strings.Contains(said, "\nARG VERSION="+own+"\n") {
		t.Errorf("the Dockerfile does not say version %s", own)
	}
}
