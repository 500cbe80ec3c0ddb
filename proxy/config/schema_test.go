package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

const schemaFile = "../../deploy/config.schema.json"

type object = map[string]any

// The schema from which editors complete is made from the table: go test ./proxy/config
// -rewrite writes it. It accepts every file that ships. The scripts show what else it refuses.
func TestSchema(t *testing.T) {
	schema, text := schemaOfTable(t)
	golden(t, schemaFile, readFile(t, schemaFile), text)
	right, err := filepath.Glob("../../deploy/*/*config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(right, configFile) {
		if err := refusedBy(schema, readFile(t, file)); err != nil {
			t.Errorf("%s is refused: %v", file, err)
		}
	}
	if !strings.Contains(readFile(t, configFile), "$schema="+strings.TrimPrefix(schemaFile, "../../")) {
		t.Errorf("%s does not name the schema", configFile)
	}
}

// schemaOfTable returns the schema as editors read it, and its text.
func schemaOfTable(t *testing.T) (schema object, text string) {
	made := schemaBelow(table(new(Config), new(route.Rule), new(User)), "")
	made["$schema"], made["title"] = "https://json-schema.org/draft/2020-12/schema", "The configuration of redlock-proxy"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(made); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &schema); err != nil { // numbers are floats, lists are []any
		t.Fatal(err)
	}
	return schema, out.String()
}

// refusedBy tells why a schema refuses a file. What is no YAML has nothing that it could refuse.
func refusedBy(schema object, text string) error {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) == 0 {
		return nil
	}
	return judge(schema, asEditors(document.Content[0]))
}

// schemaBelow makes the schema of the mapping whose rows have names that begin with prefix.
func schemaBelow(rows []setting, prefix string) object {
	properties, required := object{}, []string{}
	for _, key := range keysBelow(rows, prefix) {
		name := prefix + key
		at := slices.IndexFunc(rows, func(s setting) bool { return s.name == name })
		switch {
		case at < 0:
			properties[key] = schemaBelow(rows, name+".")
			continue
		case len(keysBelow(rows, name+".")) > 0:
			properties[key] = object{"anyOf": []any{schemaOf(rows[at], rows), schemaBelow(rows, name+".")}}
		default:
			properties[key] = schemaOf(rows[at], rows)
		}
		s := rows[at]
		described := properties[key].(object)
		described["description"] = links.ReplaceAllString(s.means, "$1")
		if s.traits&needed != 0 && name != "masters" { // locks: learn needs no masters
			required = append(required, key)
		} else if _, isRule := s.place.(*route.Rules); s.initial != "" && !isRule {
			described["default"] = asEditors(parseNode(s.initial))
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

var links = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

const (
	serverPattern   = "^((rediss?|sentinels?)://.|unix:///.)"
	durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`
	portPattern     = `:[0-9]{1,5}$`
)

// schemaOf makes the schema of one setting.
func schemaOf(s setting, rows []setting) object {
	matches := func(pattern string) object { return object{"type": "string", "pattern": pattern} }
	either := func(options ...any) object { return object{"anyOf": options} }
	listOf := func(items object) object { return object{"type": "array", "items": items} }
	words := strings.Fields(s.allowed)
	least, most := 0.0, 0.0
	if len(words) > 0 {
		most, _ = strconv.ParseFloat(words[len(words)-1], 64)
		least, _ = strconv.ParseFloat(words[0], 64)
	}
	text := object{"type": []string{"string", "number", "boolean"}, "minLength": 1}
	switch s.place.(type) {
	case *string:
		switch s.allowed {
		case "":
			return text
		case anAddress:
			return matches("^$|" + portPattern)
		case anAddressOrSocket:
			return matches("^$|^unix:/[^/]|" + portPattern)
		case aPath:
			return matches("^/")
		}
		return object{"enum": words}
	case *bool, *Rights:
		return object{"enum": words}
	case *int:
		return object{"type": "integer", "minimum": least, "maximum": most}
	case *float64:
		return object{"type": "number", "minimum": least, "maximum": most}
	case *int64:
		fewest, _ := parseSize(words[0])
		largest, _ := parseSize(words[1])
		return either(matches("^[0-9]+([kKmMgG]?[bB]|[kKmMgG])?$"), object{"type": "integer", "minimum": fewest, "maximum": largest})
	case *time.Duration:
		if strings.HasPrefix(s.allowed, "0s") {
			return either(matches(durationPattern), object{"enum": []int{0}})
		}
		return matches(durationPattern)
	case *fs.FileMode: // editors read 0700 as seven hundred
		return either(matches("^0?[67][0-7][0-7]$"), object{"type": "integer", "minimum": 600, "maximum": 777})
	case *endpoint.Secret:
		switch {
		case strings.HasSuffix(s.name, "_file"):
			return matches("^/")
		case strings.HasSuffix(s.name, "_env"):
			return matches("^[A-Z_][A-Z0-9_]*$")
		}
		return object{"type": []string{"string", "number", "boolean"}}
	case *Upstream:
		return either(object{"enum": []string{"embedded", "none"}}, matches(serverPattern))
	case *Masters:
		list := listOf(matches(serverPattern))
		list["minItems"] = 1
		return either(object{"enum": []string{"embedded"}}, list)
	case *route.Rules:
		list := listOf(schemaBelow(rows, s.name+"[]."))
		list["minItems"] = 1
		return either(object{"enum": []string{"learn"}}, list)
	case *[]User:
		return listOf(schemaBelow(rows, s.name+"[]."))
	case *[]string:
		return listOf(text)
	}
	panic(fmt.Sprintf("a schema for %s", s.name))
}

func parseNode(text string) *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		panic(err)
	}
	return document.Content[0]
}

var (
	plainInteger = regexp.MustCompile(`^[-+]?[0-9]+$`)
	plainNumber  = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// asEditors makes values of a YAML node as editors do, by the core schema of YAML 1.2:
// yes and no are texts, and 0700 is seven hundred.
func asEditors(node *yaml.Node) any {
	switch node.Kind {
	case yaml.AliasNode:
		return asEditors(node.Alias)
	case yaml.SequenceNode:
		list := []any{}
		for _, element := range node.Content {
			list = append(list, asEditors(element))
		}
		return list
	case yaml.MappingNode:
		values := object{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			values[node.Content[i].Value] = asEditors(node.Content[i+1])
		}
		return values
	}
	switch {
	case node.Style != 0:
		return node.Value
	case node.Value == "" || node.Value == "~" || strings.EqualFold(node.Value, "null"):
		return nil
	case strings.EqualFold(node.Value, "true"), strings.EqualFold(node.Value, "false"):
		return strings.EqualFold(node.Value, "true")
	case plainInteger.MatchString(node.Value), plainNumber.MatchString(node.Value):
		number, _ := strconv.ParseFloat(node.Value, 64)
		return number
	}
	return node.Value
}

// judge tells why a schema refuses a value, or returns nil. It knows the keywords that
// schemaOf and schemaBelow use, and panics at any other.
func judge(schema object, value any) error {
	for keyword, wants := range schema {
		fine := true
		text, isText := value.(string)
		number, isNumber := value.(float64)
		list, isList := value.([]any)
		values, isObject := value.(object)
		switch keyword {
		case "$schema", "title", "description", "default", "additionalProperties":
		case "type":
			types, several := wants.([]any)
			if !several {
				types = []any{wants}
			}
			fine = slices.ContainsFunc(types, func(t any) bool {
				switch t {
				case "string":
					return isText
				case "number":
					return isNumber
				case "integer":
					return isNumber && number == math.Trunc(number)
				case "array":
					return isList
				case "object":
					return isObject
				case "boolean":
					_, isBool := value.(bool)
					return isBool
				}
				panic(t)
			})
		case "enum":
			fine = slices.ContainsFunc(wants.([]any), func(one any) bool { return reflect.DeepEqual(one, value) })
		case "pattern":
			fine = !isText || regexp.MustCompile(wants.(string)).MatchString(text)
		case "minLength":
			fine = !isText || len(text) >= int(wants.(float64))
		case "minimum":
			fine = !isNumber || number >= wants.(float64)
		case "maximum":
			fine = !isNumber || number <= wants.(float64)
		case "minItems":
			fine = !isList || len(list) >= int(wants.(float64))
		case "items":
			for _, element := range list {
				if err := judge(wants.(object), element); err != nil {
					return err
				}
			}
		case "required":
			for _, key := range wants.([]any) {
				if _, has := values[key.(string)]; isObject && !has {
					return fmt.Errorf("%s is missing", key)
				}
			}
		case "properties":
			for key, inside := range values {
				of, known := wants.(object)[key]
				if !known {
					return fmt.Errorf("%s is not known", key)
				}
				if err := judge(of.(object), inside); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
		case "anyOf":
			fine = slices.ContainsFunc(wants.([]any), func(one any) bool { return judge(one.(object), value) == nil })
		default:
			panic("the schema has the keyword " + keyword)
		}
		if !fine {
			return fmt.Errorf("%v is not as %s %v wants it", value, keyword, wants)
		}
	}
	return nil
}
