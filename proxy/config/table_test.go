package config

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/route"
)

const (
	configFile   = "../../config.yaml"
	handbookFile = "../../deploy/REFERENCE.md"
)

// Each row has a field of its own, each field has a row, and config.yaml shows each key.
func TestTableAndFields(t *testing.T) {
	shipped := readFile(t, configFile)
	c, rule, user := new(Config), new(route.Rule), new(User)
	rows := map[any]string{}
	for _, s := range table(c, rule, user) {
		if other, twice := rows[s.place]; twice != (s.traits&alternative != 0) {
			t.Errorf("%s and %s: two rows have one field, or an alternative has none", s.name, other)
		}
		rows[s.place] = s.name
		key := s.name[strings.LastIndexAny(s.name, ".]")+1:]
		if !regexp.MustCompile(`\b` + key + `:\s`).MatchString(shipped) {
			t.Errorf("%s does not show %s", configFile, s.name)
		}
	}
	var walk func(field reflect.Value, name string)
	walk = func(field reflect.Value, name string) {
		if rows[field.Addr().Interface()] != "" {
			return
		}
		if field.Kind() != reflect.Struct {
			t.Errorf("the table has no row for %s", name)
			return
		}
		for i := range field.NumField() {
			if inside := field.Type().Field(i); inside.IsExported() {
				walk(field.Field(i), name+"."+inside.Name)
			}
		}
	}
	for place, name := range map[any]string{&c.Source: "the file", &c.NewSet: "-new", &c.AdminFlag: "-admin", &c.DemoServers: "-demo", &c.TLS.Files: "opened"} {
		rows[place] = name
	}
	walk(reflect.ValueOf(c).Elem(), "Config")
	walk(reflect.ValueOf(rule).Elem(), "Rule")
	walk(reflect.ValueOf(user).Elem(), "User")
}

// What a file can say of a setting is what Show says of it.
func TestShowsWhatTheFileSays(t *testing.T) {
	demo := Demo()
	for i, s := range demo.settings() {
		if s.initial == "" || s.traits&needed != 0 || s.name == "locks" {
			continue
		}
		head, key, nested := strings.Cut(s.name, ".")
		line := head + ": " + s.initial
		if nested {
			line = fmt.Sprintf("%s: {%s: %s}", head, key, s.initial)
		}
		c, err := parseConfig("f", []byte("upstream: none\nmasters: embedded\n"+line))
		if err != nil {
			t.Errorf("%s cannot be what it is by default: %v", s.name, err)
		} else if got := c.settings()[i].text(); got != s.text() || !strings.HasPrefix(s.initial, "[") && got != s.initial {
			t.Errorf("%s: %s is shown as %s", s.name, s.initial, got)
		}
	}
	if all := demo.Show(true); len(all) != len(demo.settings()) || all[0] != (Shown{"listen", "127.0.0.1:6380"}) {
		t.Errorf("all settings are %v", all)
	}
}

// The handbook's table is made from the rows: go test ./proxy/config -rewrite writes it.
func TestHandbookTable(t *testing.T) {
	const begin, end = "<!-- settings: go test ./proxy/config -rewrite writes this table -->\n", "<!-- end of settings -->\n"
	var made strings.Builder
	made.WriteString("| key | default | a reload changes it | meaning |\n|---|---|---|---|\n")
	for _, s := range table(new(Config), new(route.Rule), new(User)) {
		initial := "none"
		switch {
		case s.traits&needed != 0:
			initial = "must be given"
		case s.initial != "":
			initial = "`" + s.initial + "`"
		}
		fmt.Fprintf(&made, "| `%s` | %s | %s | %s |\n", s.name, initial, reloadWords(s), s.means)
	}
	handbook := readFile(t, handbookFile)
	before, rest, found := strings.Cut(handbook, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the handbook has no place for the table")
	}
	golden(t, handbookFile, handbook, before+begin+made.String()+end+after)
}

func reloadWords(s setting) string {
	switch {
	case strings.Contains(s.name, "[]") || s.traits&alternative != 0:
		return ""
	case s.traits&atRestart != 0:
		return "never: restart"
	case s.traits&atCommand != 0:
		return "with the next command"
	case s.traits&atLogin != 0:
		return "with the next login"
	case s.traits&asPlanned != 0:
		return "[in steps](RUN.md#change-it-while-it-runs)"
	}
	return "at once"
}

// golden compares a file with what it should be, or writes it.
func golden(t *testing.T, file, is, should string) {
	t.Helper()
	if is == should {
		return
	}
	if !datatest.Rewriting() {
		t.Errorf("%s is not what the table of settings makes it; write it with: go test ./proxy/config -rewrite", file)
		return
	}
	if err := os.WriteFile(file, []byte(should), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !datatest.Rewriting() {
		t.Fatal(err)
	}
	return string(text)
}
