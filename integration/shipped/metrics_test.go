package shipped

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"

	"gopkg.in/yaml.v3"
)

// TestAlertRules: promtool accepts the rules. Each alert fires when it should, and not
// before.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Promtool)
	for _, args := range [][]string{
		{"check", "rules", "../deploy/prometheus/alerts.yaml"},
		{"test", "rules", "../deploy/prometheus/alerts_test.yaml"},
	} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	tested, err := os.ReadFile("../deploy/prometheus/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name := range alertExpressions(t) {
		if !strings.Contains(string(tested), fmt.Sprintf(`exp_samples: [{labels: 'ALERTS{alertname=%q`, name)) {
			t.Errorf("alerts_test.yaml does not show %s firing", name)
		}
	}
}

// TestDashboardAndAlertsUseWhatThereIs: the alert rules and the dashboard use only metrics,
// labels and label values that a proxy shows. This proxy has seen locks that were won, lost,
// released and undecided, a fencing token, and masters that went away and forgot their locks.
func TestDashboardAndAlertsUseWhatThereIs(t *testing.T) {
	t.Parallel()
	shown := metricsOfAnEventfulLife(t)
	expressions := alertExpressions(t)
	maps.Copy(expressions, dashboardExpressions(t))
	if len(expressions) < 50 {
		t.Errorf("only %d expressions were found", len(expressions))
	}
	for _, where := range slices.Sorted(maps.Keys(expressions)) {
		for _, wrong := range shown.misses(expressions[where]) {
			t.Errorf("%s: %s", where, wrong)
		}
	}
	for expression, want := range map[string]string{
		`sum(redlock_nothing)`:                     "there is no metric redlock_nothing",
		`redlock_master_state{state="sleeping"}`:   `redlock_master_state has no state="sleeping"`,
		`redlock_master_state{colour="red"}`:       "redlock_master_state has no label colour",
		`sum by (colour) (redlock_votes_total)`:    "no metric here has the label colour",
		`rate(redlock_votes_total{vote!="x"}[5m])`: `redlock_votes_total has no vote="x"`,
	} {
		if wrong := shown.misses(expression); !slices.Contains(wrong, want) {
			t.Errorf("the test itself: %s: %v", expression, wrong)
		}
	}
}

// shownMetrics returns, for each metric, the values of each label.
type shownMetrics map[string]map[string]map[string]bool

func metricsOfAnEventfulLife(t *testing.T) shownMetrics {
	c := rig.StartServers(t)
	options := c.With(rig.Options{RestartDelay: 2100 * time.Millisecond, MasterTimeout: 500 * time.Millisecond, RuleMore: map[string]string{"lock:*": "wait: 10ms"}})
	p, other := rig.StartProxy(t, options), rig.StartProxy(t, options)
	shown := shownMetrics{}
	client := p.Client(t)
	rig.MustAcquire(t, client, "lock:held", "token-of-the-first-client", rig.LongTTL)
	if ok, err := rig.Acquire(t.Context(), client, "lock:held", "token-of-the-second-client", rig.LongTTL); ok || err != nil {
		t.Fatalf("a held lock: %v %v", ok, err)
	}
	rig.MustAcquire(t, client, "lock:released", "token-of-the-first-client", rig.LongTTL)
	if err := client.Do(t.Context(), "REDLOCK", "TOKEN", "lock:released", "token-of-the-first-client").Err(); err != nil {
		t.Fatal(err)
	}
	rig.MustRelease(t, client, "lock:released", "token-of-the-first-client")
	c.Masters[0].Kill()
	p.WaitState(t, c.Masters[0], "unreachable")
	other.WaitState(t, c.Masters[0], "unreachable")
	c.Masters[0].Start(t)
	p.WaitState(t, c.Masters[0], "quarantined")
	other.WaitState(t, c.Masters[0], "quarantined") // the proxy that began the quarantine has counted it
	shown.read(t, p)
	noted := 0
	for _, proxy := range []*rig.Proxy{p, other} {
		if proxy.Metric(t, fmt.Sprintf(`redlock_master_quarantines_begun_total{cause="emptied",master=%q}`, c.Masters[0].Addr())) == "1" {
			noted++
		}
	}
	if noted != 1 {
		t.Errorf("%d proxies counted the quarantine as theirs, want one", noted)
	}
	for _, master := range c.Masters[1:4] {
		master.Kill()
	}
	rig.WaitFor(t, "locks cannot be decided", func() error {
		if err := client.Get(t.Context(), "lock:held").Err(); !rig.NoQuorum(err) {
			return fmt.Errorf("GET is answered %v", err)
		}
		return nil
	})
	shown.read(t, p)
	learning := rig.StartProxy(t, rig.Options{Learn: true, Upstream: options.Upstream})
	rig.WaitFor(t, "a proxy shows that it learns", func() error {
		shown.read(t, learning)
		if !shown["redlock_hazards"]["kind"]["learning"] {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	return shown
}

var (
	series  = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	matcher = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"`)
)

func (shown shownMetrics) read(t *testing.T, p *rig.Proxy) {
	t.Helper()
	for line := range strings.Lines(p.Metrics(t)) {
		found := series.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			continue
		}
		if shown[found[1]] == nil {
			shown[found[1]] = map[string]map[string]bool{"job": {}, "instance": {}} // Prometheus adds these
		}
		for _, label := range matcher.FindAllStringSubmatch(found[2], -1) {
			if shown[found[1]][label[1]] == nil {
				shown[found[1]][label[1]] = map[string]bool{}
			}
			shown[found[1]][label[1]][label[3]] = true
		}
	}
}

var (
	// selector is a word of PromQL. A metric's name may have label matchers.
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\})?`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
	texts    = regexp.MustCompile(`"[^"]*"`)
	// ownWords are the words of PromQL that the expressions use.
	ownWords = strings.Fields("up last_over_time and by count count_values histogram_quantile increase max on or rate sum time unless group_left")
)

// misses returns the parts of an expression that the proxy does not show. It does not parse
// the expression: promtool does.
func (shown shownMetrics) misses(expression string) (wrong []string) {
	groupedBy := map[string]bool{}
	for _, found := range grouping.FindAllStringSubmatch(expression, -1) {
		for _, label := range strings.FieldsFunc(found[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			groupedBy[label] = true
		}
	}
	known := map[string]bool{}
	rest := ranges.ReplaceAllString(grouping.ReplaceAllString(expression, ""), "")
	for _, found := range selector.FindAllStringSubmatch(rest, -1) {
		name, labels := found[1], found[2]
		there := shown[name]
		switch {
		case there == nil && (slices.Contains(ownWords, name) || strings.Contains(strings.Join(texts.FindAllString(rest, -1), " "), name)):
			continue
		case there == nil:
			wrong = append(wrong, "there is no metric "+name)
			continue
		}
		for label := range there {
			known[label] = true
		}
		for _, m := range matcher.FindAllStringSubmatch(labels, -1) {
			label, values := m[1], []string{m[3]}
			if there[label] == nil {
				wrong = append(wrong, fmt.Sprintf("%s has no label %s", name, label))
				continue
			}
			if strings.Contains(m[2], "~") {
				values = strings.Split(m[3], "|")
			}
			for _, value := range values {
				if label != "job" && label != "instance" && !there[label][value] {
					wrong = append(wrong, fmt.Sprintf("%s has no %s=%q", name, label, value))
				}
			}
		}
	}
	for _, label := range slices.Sorted(maps.Keys(groupedBy)) {
		if !known[label] {
			wrong = append(wrong, "no metric here has the label "+label)
		}
	}
	return wrong
}

// alertRule is an alert of deploy/prometheus/alerts.yaml.
type alertRule struct {
	Alert, Expr string
	Annotations map[string]string
}

// alertRules returns the alert rules, by the alert's name.
func alertRules(t *testing.T) map[string]alertRule {
	t.Helper()
	text, err := os.ReadFile("../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []alertRule
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]alertRule{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}
	return found
}

// alertExpressions returns the expressions of the alert rules, by the alert's name.
func alertExpressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, rule := range alertRules(t) {
		found[name] = rule.Expr
	}
	return found
}

// dashboardExpressions returns the expressions of the dashboard's panels and variables.
func dashboardExpressions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../deploy/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, panel := range file.Panels {
		for _, target := range panel.Targets {
			found[panel.Title+" "+target.RefID] = target.Expr
		}
	}
	for _, variable := range file.Templating.List {
		if variable.Type == "query" {
			asked := strings.TrimSuffix(strings.TrimPrefix(variable.Query, "label_values("), ")")
			of, label, _ := cutLast(asked, ", ")
			found["variable "+variable.Name] = fmt.Sprintf("sum by (%s) (%s)", label, of)
		}
	}
	return found
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
