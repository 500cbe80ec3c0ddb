package shipped

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"

	"gopkg.in/yaml.v3"
)

var writeManifests = flag.Bool("write-manifests", false, "write deploy/kubernetes from the chart")

const chart = "../deploy/helm"

// rendered returns the objects of the chart with these values, which the judge has found right. A
// parent chart has it as a dependency.
func rendered(t *testing.T, judge, parent, values string) string {
	t.Helper()
	cmd := exec.Command(judge, "chart", chart, parent, values)
	var wrong strings.Builder
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("the chart with %q: %v\n%s", values, err, wrong.String())
	}
	return string(out)
}

// TestChart: helm's own linter and engine take the chart, Kubernetes's types and those of the Prometheus
// operator take its objects, and every reference leads somewhere: as a service, as a sidecar of another
// chart, with the masters of somebody else, with all that watches it. Wrong values are refused. The plain
// manifests are what the chart makes by itself.
func TestChart(t *testing.T) {
	t.Parallel()
	judge := judgeOfManifests(t)
	objects := map[string]string{}
	for _, document := range strings.Split(rendered(t, judge, "", ""), "\n---\n") {
		file := "proxy.yaml"
		if strings.Contains(document, "redlock-master") && !strings.Contains(document, "config.yaml") {
			file = "masters.yaml"
		}
		if objects[file] != "" {
			objects[file] += "\n---\n"
		}
		objects[file] += strings.TrimSuffix(document, "\n")
	}
	if len(objects) != 2 {
		t.Fatalf("the chart makes %d files", len(objects))
	}
	for file, text := range objects {
		text = "# Made from deploy/helm: REDLOCK_TEST=servers go test ./integration/shipped -run TestChart -write-manifests\n" + text + "\n"
		if *writeManifests {
			if err := os.WriteFile(kubernetesDir+file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if rig.ReadFile(t, kubernetesDir+file) != text {
			t.Errorf("%s is not what the chart makes; its first line says how to write it", kubernetesDir+file)
		}
	}

	for _, right := range []struct{ parent, values, want string }{
		{"", "monitoring: {podMonitor: true, rules: true, dashboard: true}", "\n  podMetricsEndpoints: [{port: admin}]"},
		{"", "configIn: Secret\nmasters: {create: false, urls: [rediss://redlock@10.0.0.1, rediss://redlock@10.0.0.2, rediss://redlock@10.0.0.3]}", "secret: {secretName: redlock-proxy}"},
		{"", "locks: learn\nupstream: none\nmasters: {number: 3}", "\n      learn\n"},
		{"manifests/testdata/shop", "redlock-proxy: {mode: sidecar, podLabels: {app: shop}, monitoring: {podMonitor: true}}", "listen: 127.0.0.1:6380"},
	} {
		if out := rendered(t, judge, right.parent, right.values); !strings.Contains(out, right.want) {
			t.Errorf("%s gives no %q:\n%s", right.values, right.want, out)
		}
	}
	for values, want := range map[string]string{
		"replica: 2":               "replica",
		"mode: daemon":             "mode",
		"masters: {number: 1}":     "minimum",
		"masters: {create: false}": "masters.urls names no server",
		"config: {listen: 1}":      "listen",
		"mode: sidecar":            "podLabels",
	} {
		if out, err := exec.Command(judge, "chart", chart, "", values).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s is answered %v: %s", values, err, out)
		}
	}

	var about struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(rig.ReadFile(t, chart+"/Chart.yaml")), &about); err != nil {
		t.Fatal(err)
	}
	if own := ownNumber(t); about.Version != own || about.AppVersion != own {
		t.Errorf("the chart says %+v, and the program is %s", about, own)
	}
	if helm, err := exec.LookPath("helm"); err == nil { // the linter above is the same without its program
		if out, err := exec.Command(helm, "lint", "--strict", chart).CombinedOutput(); err != nil {
			t.Errorf("helm lint: %v\n%s", err, out)
		}
	}
}
