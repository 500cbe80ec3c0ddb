package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"redlock-proxy/proxy/route"
)

// A configReader fills structs from YAML nodes by the tags of their fields:
//
//	yaml    the key
//	also    more keys for the field, of which only one may be set
//	range   the least and the largest value, in the file's words; without a least one, checks.go has it
//	oneof   the words that are allowed; for a bool those for false and true
//	list    what a list must be
//
// It is strict: an unknown key is a problem. It goes on after a problem to find the next
// one. yaml.v3 could do that for plain structs (KnownFields). But yaml.v3 accepts unknown
// keys below a type with its own UnmarshalYAML, skips keys without a value, and quotes
// wrong values, which may be passwords. Its errors name no key.
type configReader struct {
	file     string
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

// read fills the variable at place. tag is the tag of its field.
func (r *configReader) read(node *yaml.Node, key string, place any, tag reflect.StructTag) {
	if !r.isPlain(node, key) || r.readOwn(node, key, place, tag) {
		return
	}
	value := reflect.ValueOf(place).Elem()
	if _, isText := place.(encoding.TextUnmarshaler); value.Kind() == reflect.Struct && !isText {
		r.mapping(node, key, value)
		return
	}
	if node.Kind != yaml.ScalarNode {
		r.failAt(node.Line, key, "must be a single value, not a list or a mapping")
		return
	}
	if err := parseValue(place, node.Value, tag); err != nil {
		r.failAt(node.Line, key, "%s", err)
	}
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

// mapping fills the fields of a struct.
func (r *configReader) mapping(node *yaml.Node, path string, into reflect.Value) {
	names, fields := tagged(into.Type())
	allowed := strings.Join(names, ", ")
	if node.Kind != yaml.MappingNode {
		r.failAt(node.Line, path, "must be a mapping with the keys %s", allowed)
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		at := slices.Index(names, name.Value)
		if at < 0 && into.Type() == reflect.TypeFor[route.Rule]() && name.Value == "users" {
			r.failAt(name.Line, path+".users", "%s", noRuleUsers)
			continue
		}
		if at < 0 || name.Kind != yaml.ScalarNode {
			shown := quoteKey(name.Value)
			if slices.Contains(names, "password") {
				shown = "a key" // it may be the password
			}
			r.failAt(name.Line, path, "%s is not known here; allowed: %s", shown, allowed)
			continue
		}
		key := strings.TrimPrefix(path+"."+name.Value, ".")
		if first, twice := r.places[key]; twice {
			r.failAt(name.Line, key, "duplicate key, first set on line %d", first)
			continue
		}
		r.places[key] = name.Line
		r.read(value, key, into.FieldByIndex(fields[at].Index).Addr().Interface(), fields[at].Tag)
	}
}

// tagged returns the keys of a struct's mapping, and for each the field to read it into.
func tagged(t reflect.Type) (names []string, fields []reflect.StructField) {
	for _, field := range reflect.VisibleFields(t) {
		for _, name := range strings.Fields(field.Tag.Get("yaml") + " " + field.Tag.Get("also")) {
			names, fields = append(names, name), append(fields, field)
		}
	}
	return names, fields
}

// readList reads a list. Each element begins as a copy of fresh, and stays so if it
// cannot be read.
func readList[T any](r *configReader, node *yaml.Node, key string, tag reflect.StructTag, fresh T) []T {
	if node.Kind != yaml.SequenceNode {
		r.failAt(node.Line, key, "must be a list of %s", tag.Get("list"))
		return nil
	}
	list := slices.Repeat([]T{fresh}, len(node.Content))
	for i, element := range node.Content {
		path := fmt.Sprintf("%s[%d]", key, i)
		r.places[path] = element.Line
		r.read(element, path, &list[i], tag)
	}
	return list
}
