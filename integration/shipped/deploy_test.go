package shipped

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/integration/rig"

	"gopkg.in/yaml.v3"
)

const (
	composeFile   = "../deploy/compose/compose.yaml"
	composeConfig = "../deploy/compose/config.yaml"
	kubernetesDir = "../deploy/kubernetes/"
)

var building sync.Mutex

// judgeOfManifests builds the program of integration/manifests, which needs modules of its own, and
// returns its path.
func judgeOfManifests(t *testing.T) string {
	t.Helper()
	judge := filepath.Join(rig.Scratch, "redlock-manifests")
	building.Lock()
	defer building.Unlock()
	if _, err := os.Stat(judge); err == nil {
		return judge
	}
	build := exec.Command("go", "build", "-o", judge, ".")
	build.Dir = "manifests"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building redlock-manifests: %v\n%s", err, out)
	}
	return judge
}

// TestDeploymentFilesAreAccepted: Kubernetes's own types and docker compose's own loader
// accept the files, and every reference in them leads somewhere.
func TestDeploymentFilesAreAccepted(t *testing.T) {
	t.Parallel()
	judge := judgeOfManifests(t)
	masters, proxy, sidecar := kubernetesDir+"masters.yaml", kubernetesDir+"proxy.yaml", kubernetesDir+"sidecar.yaml"
	for _, args := range [][]string{
		{"compose", composeFile}, {"kubernetes", masters, proxy}, {"kubernetes", masters, sidecar}, {"kubernetes", masters, proxy, sidecar},
	} {
		if out, err := exec.Command(judge, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, wrong := range []struct{ kind, file, from, to, want string }{
		{"kubernetes", proxy, "livenessProbe:", "livenesProbe:", "unknown field"},
		{"kubernetes", proxy, "replicas: 3", "replicas: three", "cannot unmarshal"},
		{"kubernetes", proxy, "memory: 1Gi", "memory: 1 gig", "quantities must match"},
		{"kubernetes", proxy, "targetPort: redis", "targetPort: rediss", "no pod has the port rediss"},
		{"kubernetes", proxy, "configMap: {name: redlock-proxy}", "configMap: {name: redlock}", "there is no ConfigMap redlock"},
		{"kubernetes", proxy, "redlock-proxy/masters: allowed", "redlock-proxy/masters: forgotten", "network policy redlock-master lets nobody in"},
		{"kubernetes", proxy, "    - ports: [{port: redis}]\n", "    - {}\n", "everybody reaches the admin port of redlock-proxy"},
		{"kubernetes", proxy, "    - ports: [{port: redis}]\n", "    - ports: [{port: redis}, {port: admin}]\n", "everybody reaches the admin port of redlock-proxy"},
		{"kubernetes", proxy, "kind: NetworkPolicy\nmetadata: {name: redlock-proxy}\nspec:\n  podSelector: {matchLabels: {app.kubernetes.io/name: redlock-proxy}}", "kind: NetworkPolicy\nmetadata: {name: redlock-proxy}\nspec:\n  podSelector: {matchLabels: {app.kubernetes.io/name: redlock-master}}", "everybody reaches the admin port of redlock-proxy"},
		{"kubernetes", sidecar, "{port: 9381, endPort: 65535}", "{port: 9380, endPort: 65535}", "everybody reaches the admin port of shop"},
		{"compose", composeFile, "stop_grace_period", "stop_grace", "stop_grace"},
		{"compose", composeFile, "networks: [upstream]", "networks: [downstream]", "downstream"},
		{"compose", composeFile, "stop_grace_period: 12s\n    restart: unless-stopped", "stop_grace_period: 12s", "nobody restarts proxy"},
	} {
		text, err := os.ReadFile(wrong.file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), wrong.from) == 0 {
			t.Errorf("%s does not say %s", wrong.file, wrong.from)
		}
		broken := filepath.Join(t.TempDir(), "broken.yaml")
		if err := os.WriteFile(broken, []byte(strings.Replace(string(text), wrong.from, wrong.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{wrong.kind, broken}
		if wrong.kind == "kubernetes" {
			args = []string{wrong.kind, masters, broken}
		}
		if out, err := exec.Command(judge, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), wrong.want) {
			t.Errorf("the test itself: %s for %s: %v, %s; want %s", wrong.to, wrong.from, err, out, wrong.want)
		}
	}
}

// TestDeployedConfigurationsWork: the proxy accepts each deployed configuration and takes
// locks. Its servers are started as the deployment starts them. Only the addresses differ.
func TestDeployedConfigurationsWork(t *testing.T) {
	t.Parallel()
	for name, deployed := range map[string]struct{ config, masters []string }{
		"compose": {[]string{rig.ReadFile(t, composeConfig)}, composeMasters(t)},
		"kubernetes": {
			[]string{configMapOf(t, kubernetesDir+"proxy.yaml"), configMapOf(t, kubernetesDir+"sidecar.yaml")},
			kubernetesMasters(t),
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers := []*rig.Server{rig.StartServer(t, "upstream")}
			for i := range rig.MasterCount {
				servers = append(servers, rig.StartServer(t, fmt.Sprintf("master%d", i+1), deployed.masters...))
			}
			for i, config := range deployed.config {
				checkDeployedConfiguration(t, fmt.Sprintf("%s-%d", name, i), config, servers)
			}
		})
	}
}

var (
	serverAddress = regexp.MustCompile(`redis://[a-z0-9.-]+:6379`)
	ownAddress    = regexp.MustCompile(`(?m)^(listen|admin): [0-9.]+:[0-9]+$`)
)

// checkDeployedConfiguration runs a proxy with a configuration. The servers are in the
// configuration's order, the upstream first.
func checkDeployedConfiguration(t *testing.T, name, config string, servers []*rig.Server) {
	t.Helper()
	p := &rig.Proxy{Port: rig.FreePort(t), Admin: rig.FreePort(t), Binary: rig.ProxyBinary}
	named := 0
	config = serverAddress.ReplaceAllStringFunc(config, func(string) string {
		named++
		return servers[(named-1)%len(servers)].URL()
	})
	if named != len(servers) {
		t.Fatalf("%s names %d servers", name, named)
	}
	config = ownAddress.ReplaceAllStringFunc(config, func(line string) string {
		if strings.HasPrefix(line, "listen") {
			return fmt.Sprintf("listen: 127.0.0.1:%d", p.Port)
		}
		return fmt.Sprintf("admin: 127.0.0.1:%d", p.Admin)
	})
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Flags = []string{"-config", file, "-new"}
	p.Start(t)
	t.Cleanup(func() { p.Finish(t) })
	rig.WaitFor(t, "the proxy is ready", p.Ready)
	if out, err := exec.Command(rig.ProxyBinary, "-config", file, "-check").CombinedOutput(); err != nil || !strings.Contains(string(out), "no hazards found") {
		t.Errorf("-check: %v\n%s", err, out)
	}
	client := p.Client(t)
	key := "lock:" + name
	rig.MustAcquire(t, client, key, "token-of-the-deployment", rig.LongTTL)
	if err := client.Set(t.Context(), "plain", name, 0).Err(); err != nil {
		t.Error(err)
	}
	if value, there := servers[0].Value(t, "plain"); !there || value != name {
		t.Errorf("the upstream holds %q", value)
	}
	if _, there := servers[0].Value(t, key); there {
		t.Error("the lock is at the upstream")
	}
	rig.MustRelease(t, client, key, "token-of-the-deployment")
	if out, err := exec.Command(rig.ProxyBinary, "-config", file, "-reload").CombinedOutput(); err != nil {
		t.Errorf("-reload: %v\n%s", err, out)
	}
}

// object returns the first object of this kind in a file of Kubernetes.
func object(t *testing.T, path, kind string, into any) {
	t.Helper()
	for document := range strings.SplitSeq(rig.ReadFile(t, path), "\n---\n") {
		var is struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &is); err != nil {
			t.Fatal(err)
		}
		if is.Kind == kind {
			if err := yaml.Unmarshal([]byte(document), into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s has no %s", path, kind)
}

func configMapOf(t *testing.T, path string) string {
	var settings struct{ Data map[string]string }
	object(t, path, "ConfigMap", &settings)
	return settings.Data["config.yaml"]
}

// kubernetesMasters returns the arguments that start the masters.
func kubernetesMasters(t *testing.T) []string {
	var set struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []struct{ Args []string } }
			}
		}
	}
	object(t, kubernetesDir+"masters.yaml", "StatefulSet", &set)
	return set.Spec.Template.Spec.Containers[0].Args
}

func composeMasters(t *testing.T) []string {
	var file struct {
		Services map[string]struct{ Command []string }
	}
	if err := yaml.Unmarshal([]byte(rig.ReadFile(t, composeFile)), &file); err != nil {
		t.Fatal(err)
	}
	command := file.Services["master1"].Command
	if !slices.Contains(command, "noeviction") || command[0] != "redis-server" {
		t.Fatalf("master1 is started by %v", command)
	}
	return command[1:]
}
