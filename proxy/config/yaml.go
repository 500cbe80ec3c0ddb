package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// parse parses a whole file. Missing keys keep their defaults, except upstream and
// masters. Without these, the proxy would silently hold its locks in an embedded server.
func parse(file string, text []byte, flags Flags) (*Config, error) {
	cfg := Demo()
	r := &configReader{file: file, cfg: cfg, places: map[string]int{}}
	cfg.Source, cfg.places = file, r.places
	top := r.document(text)
	switch {
	case len(r.problems) > 0: // the file is not valid YAML, so there is nothing more to check
	case top == nil:
		r.failAt(0, "", "the file is empty; it needs at least the keys upstream and masters")
	default:
		if r.isPlain(top, "") {
			r.mapping(top, "", "", table(cfg, new(route.Rule), new(User)))
		}
		if flags.Learn {
			cfg.Locks = nil
		}
		if cfg.AdminFlag = flags.Admin; flags.Admin != "" {
			cfg.Admin = flags.Admin
		}
		if top.Kind == yaml.MappingNode {
			r.check()
		}
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.line - b.line })
		return nil, r.problems
	}
	return cfg, nil
}

// A configReader fills a configuration from YAML nodes by the rows of its table. It is
// strict: an unknown key is a problem. It goes on after a problem to find the next one.
// yaml.v3 could do that for plain structs (KnownFields). But yaml.v3 accepts unknown
// keys below a type with its own UnmarshalYAML, skips keys without a value, and quotes
// wrong values, which may be passwords. Its errors name no key.
type configReader struct {
	file     string
	cfg      *Config
	problems Error
	places   map[string]int // the line of each key in the file, by its path
}

// fail reports a problem at a key, with the line of the key.
func (r *configReader) fail(key, format string, values ...any) {
	r.failAt(r.places[key], key, format, values...)
}

func (r *configReader) failAt(line int, key, format string, values ...any) {
	r.problems = append(r.problems, Problem{r.file, line, key, fmt.Sprintf(format, values...)})
}

// sound tells whether key and everything below it were read without a problem.
func (r *configReader) sound(key string) bool {
	return !slices.ContainsFunc(r.problems, func(p Problem) bool {
		rest, below := strings.CutPrefix(p.key, key)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (r *configReader) has(key string) bool {
	_, ok := r.places[key]
	return ok
}

// document parses the text and returns its one top node, or nil if there is none.
func (r *configReader) document(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		r.syntaxError(err)
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		r.failAt(second.Line, "", "a second YAML document (after ---); allowed: one")
	} else if !errors.Is(err, io.EOF) {
		r.syntaxError(err)
	}
	return document.Content[0]
}

var yamlErrorLine = regexp.MustCompile(`^yaml: line (\d+): `)

// syntaxError reports the parser's error as a problem. Only the error about an unknown
// alias quotes the file's text. It gets another text, because it may quote a password.
func (r *configReader) syntaxError(err error) {
	text, line := err.Error(), 0
	if found := yamlErrorLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = text[len(found[0]):]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	switch {
	case strings.Contains(text, "anchor"):
		text = "a value that begins with * needs quotes"
	case strings.Contains(text, "tab character"):
		text += "; indent with spaces"
	case strings.Contains(text, "cannot start any token"):
		text += "; indent with spaces, not with tabs, and quote a value that begins with @, ` or %"
	}
	where := "not valid YAML"
	if line > 0 {
		where += " near this line" // the parser's line is sometimes off by one
	}
	r.failAt(line, "", "%s: %s", where, text)
}

// read reads what the file has at path: the value of the row called name, or the keys below it.
func (r *configReader) read(node *yaml.Node, path, name string, rows []setting) {
	if !r.isPlain(node, path) {
		return
	}
	names := keysBelow(rows, name+".")
	at := slices.IndexFunc(rows, func(s setting) bool { return s.name == name })
	switch {
	case len(names) == 0:
		r.value(node, path, rows[at])
	case at < 0 || node.Kind != yaml.ScalarNode:
		r.mapping(node, path, name+".", rows)
	case rows[at].set(node.Value) != nil:
		r.fail(path, "must be the word%s or a mapping with the keys %s", rows[at].allowed, strings.Join(names, ", "))
	}
}

// value reads the value of one row. The few values that are more than a single value or a
// list are in keys.go.
func (r *configReader) value(node *yaml.Node, path string, s setting) {
	switch place := s.place.(type) {
	case *Masters:
		*place = r.readMasters(node, path, s)
	case *route.Rules:
		*place = r.readRules(node, path, s)
	case *[]User:
		*place = readList(r, node, path, s, func(user *User) []setting {
			reset(ofUser(user))
			return ofUser(user)
		})
	case *[]string:
		*place = readList(r, node, path, s, func(text *string) []setting { return []setting{{name: s.name + "[]", place: text}} })
	case *endpoint.Secret:
		r.secret(node, path, place)
	default:
		if node.Kind != yaml.ScalarNode {
			r.failAt(node.Line, path, "must be a single value, not a list or a mapping")
		} else if err := s.set(node.Value); err != nil {
			r.failAt(node.Line, path, "%s", err)
		}
	}
}

// readList reads a list. rowsOf returns the rows of an element.
func readList[T any](r *configReader, node *yaml.Node, path string, s setting, rowsOf func(element *T) []setting) []T {
	if node.Kind != yaml.SequenceNode {
		r.failAt(node.Line, path, "must be a list of %s", s.allowed)
		return nil
	}
	list := make([]T, len(node.Content))
	for i, element := range node.Content {
		at, rows := elementKey(path, i), rowsOf(&list[i])
		r.places[at] = element.Line
		r.read(element, at, s.name+"[]", rows)
	}
	return list
}

// isPlain refuses aliases, anchors, nulls and tags. An operator who writes one usually
// means a plain text, such as a password.
func (r *configReader) isPlain(node *yaml.Node, key string) bool {
	switch {
	case node.Kind == yaml.AliasNode:
		r.failAt(node.Line, key, "is a YAML alias; write the value out, or quote it if it begins with *")
	case node.Anchor != "":
		r.failAt(node.Line, key, "is a YAML anchor; a value that begins with & needs quotes")
	case node.ShortTag() == "!!null":
		r.failAt(node.Line, key, "has no value; write one (the texts ~ and null need quotes), or leave the key out")
	case strings.HasPrefix(node.Tag, "!") && !strings.HasPrefix(node.Tag, "!!"):
		r.failAt(node.Line, key, "is a YAML tag; a value that begins with ! needs quotes")
	default:
		return true
	}
	return false
}

// mapping reads the keys below path, whose rows have names that begin with prefix.
func (r *configReader) mapping(node *yaml.Node, path, prefix string, rows []setting) {
	names := keysBelow(rows, prefix)
	if node.Kind != yaml.MappingNode {
		r.failAt(node.Line, path, "must be a mapping with the keys %s", strings.Join(names, ", "))
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := strings.TrimPrefix(path+"."+name.Value, ".")
		if name.Kind != yaml.ScalarNode || !slices.Contains(names, name.Value) {
			r.unknown(name, path, names, rows)
		} else if first, twice := r.places[key]; twice {
			r.failAt(name.Line, key, "duplicate key, first set on line %d", first)
		} else {
			r.places[key] = name.Line
			r.read(value, key, prefix+name.Value, rows)
		}
	}
}

// unknown reports a key that no row has.
func (r *configReader) unknown(name *yaml.Node, path string, names []string, rows []setting) {
	if strings.HasPrefix(path, "locks[") && name.Value == "users" {
		r.failAt(name.Line, path+".users", "%s", noRuleUsers)
		return
	}
	shown, hint := "a key", ";" // for it may be a password
	if !slices.Contains(names, "password") && plainKey.MatchString(name.Value) {
		shown = strconv.Quote(name.Value)
		candidates := slices.Clone(names)
		for _, s := range rows {
			candidates = append(candidates, s.name)
		}
		if meant := closest(name.Value, candidates); meant != "" {
			hint = "; did you mean " + meant + "?"
		}
	}
	r.failAt(name.Line, path, "%s is not known here%s allowed: %s", shown, hint, strings.Join(names, ", "))
}

// keysBelow returns the keys of the mapping whose rows have names that begin with prefix.
func keysBelow(rows []setting, prefix string) (keys []string) {
	for _, s := range rows {
		rest, below := strings.CutPrefix(s.name, prefix)
		if end := strings.IndexAny(rest, ".["); end >= 0 {
			rest = rest[:end]
		}
		if below && !slices.Contains(keys, rest) {
			keys = append(keys, rest)
		}
	}
	return keys
}
