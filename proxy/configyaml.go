package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// yamlReader walks YAML nodes strictly: what it does not know is a problem,
// not something to skip. It goes on after a problem to find the next one.
type yamlReader struct {
	file     string
	problems ConfigError
	places   map[string]int // the line of each key that was there, by its path
}

func (r *yamlReader) fail(line int, key, format string, values ...any) {
	r.problems = append(r.problems, configProblem{r.file, line, key, fmt.Sprintf(format, values...)})
}

// yamlField is one key that a mapping may have.
type yamlField struct {
	name   string
	secret bool // neither the value nor what stands around it is ever shown
	read   func(node *yaml.Node, key string)
}

// document parses the text and returns its one top node, nil if there is none.
func (r *yamlReader) document(text []byte) *yaml.Node {
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
		r.fail(second.Line, "", "a second YAML document (after ---); allowed: one")
	} else if !errors.Is(err, io.EOF) {
		r.syntaxError(err)
	}
	return document.Content[0]
}

var yamlErrorLine = regexp.MustCompile(`^yaml: line (\d+): `)

// syntaxError gives the parser's error our form. An unknown alias is the one
// error that quotes the text, and the text may be a password.
func (r *yamlReader) syntaxError(err error) {
	text, line := err.Error(), 0
	if found := yamlErrorLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = text[len(found[0]):]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	if strings.Contains(text, "anchor") {
		text = "a value that begins with * needs quotes"
	}
	if line > 0 {
		r.fail(line, "", "not valid YAML near this line: %s", text) // the parser's lines are one off at times
		return
	}
	r.fail(0, "", "not valid YAML: %s", text)
}

// mapping calls each key's reader with its value and returns the line of each
// key that was there.
func (r *yamlReader) mapping(node *yaml.Node, path string, fields ...yamlField) map[string]int {
	lines := map[string]int{}
	names := make([]string, len(fields))
	secret := false
	for i, field := range fields {
		names[i] = field.name
		secret = secret || field.secret
	}
	allowed := strings.Join(names, ", ")
	if node.Kind != yaml.MappingNode {
		r.fail(node.Line, path, "must be a mapping with the keys %s", allowed)
		return lines
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		field := findField(fields, name)
		if field == nil {
			shown := quoteKey(name.Value)
			if secret {
				shown = "a key"
			}
			r.fail(name.Line, path, "%s is not known here; allowed: %s", shown, allowed)
			continue
		}
		key := joinKey(path, field.name)
		if first, twice := lines[field.name]; twice {
			r.fail(name.Line, key, "stands here a second time; the first is in line %d", first)
			continue
		}
		lines[field.name] = name.Line
		r.places[key] = name.Line
		field.read(value, key)
	}
	return lines
}

func findField(fields []yamlField, name *yaml.Node) *yamlField {
	if name.Kind != yaml.ScalarNode {
		return nil
	}
	for i := range fields {
		if fields[i].name == name.Value {
			return &fields[i]
		}
	}
	return nil
}

func joinKey(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// sequence calls read with each element of a list.
func (r *yamlReader) sequence(node *yaml.Node, key string, read func(node *yaml.Node, key string)) {
	for i, element := range node.Content {
		path := fmt.Sprintf("%s[%d]", key, i)
		r.places[path] = element.Line
		read(element, path)
	}
}

// scalar is a single value's text as it is written; numbers and words such as
// true are texts too, so a password of digits needs no quotes.
func (r *yamlReader) scalar(node *yaml.Node, key, what string) (string, bool) {
	switch {
	case node.Kind == yaml.AliasNode:
		r.fail(node.Line, key, "is a YAML alias; write the value out, or quote it if it begins with *")
	case node.Kind != yaml.ScalarNode:
		r.fail(node.Line, key, "must be %s, not a list or a mapping", what)
	case node.Anchor != "":
		r.fail(node.Line, key, "is a YAML anchor; a value that begins with & needs quotes")
	case node.ShortTag() == "!!null":
		r.fail(node.Line, key, "has no value; write %s (the texts ~ and null need quotes), or leave the key out", what)
	case strings.HasPrefix(node.Tag, "!") && !strings.HasPrefix(node.Tag, "!!"):
		r.fail(node.Line, key, "is a YAML tag; a value that begins with ! needs quotes")
	default:
		return node.Value, true
	}
	return "", false
}

// text is a field whose value parse checks and keeps.
func (r *yamlReader) text(name, what string, parse func(text string) error) yamlField {
	return yamlField{name: name, read: func(node *yaml.Node, key string) {
		text, ok := r.scalar(node, key, what)
		if !ok {
			return
		}
		if err := parse(text); err != nil {
			r.fail(node.Line, key, "%s", err)
		}
	}}
}

// keep makes of a parser and a place to put its value a check for text.
func keep[T any](place *T, parse func(text string) (T, error)) func(text string) error {
	return func(text string) error {
		value, err := parse(text)
		if err == nil {
			*place = value
		}
		return err
	}
}
