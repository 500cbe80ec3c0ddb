package proxytest

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"regexp"
	"strconv"
	"strings"
)

// longest is the length of a text that is written out.
const longest = 990

// Show writes the first RESP value of reply as one line. The first byte of RESP stands before it, except
// that bulk strings have Go's quotes, arrays are [a b], and maps {key value}. The result is empty if the value is
// not whole, and says what is wrong if it is no RESP.
func Show(reply []byte) (line string, rest []byte) {
	head, rest, isWhole := bytes.Cut(reply, []byte("\r\n"))
	if !isWhole {
		return "", reply
	}
	kind, text := head[:min(1, len(head))], string(head[min(1, len(head)):])
	n, err := strconv.Atoi(text)
	switch string(kind) {
	case "+", "-", ":", "_", "#", ",", "(":
		quoted := strconv.Quote(string(head))
		return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), rest
	case "$", "=", "*", "~", ">", "%", "|":
		if err == nil {
			break
		}
		fallthrough
	default:
		return fmt.Sprintf("no RESP: %q", reply), nil
	}
	switch {
	case n < 0:
		return string(head), rest
	case string(kind) == "$" || string(kind) == "=":
		if len(rest) < n+2 {
			return "", reply
		}
		return strings.TrimPrefix(string(kind), "$") + quote(string(rest[:n])), rest[n+2:]
	}
	isPaired := string(kind) == "%" || string(kind) == "|"
	var elements []string
	for range n * map[bool]int{false: 1, true: 2}[isPaired] {
		var element string
		if element, rest = Show(rest); element == "" {
			return "", reply
		}
		elements = append(elements, element)
	}
	list := strings.Join(Repeats(elements), " ")
	switch string(kind) {
	case "*":
		return "[" + list + "]", rest
	case "%":
		return "{" + list + "}", rest
	case "|": // says something about the value behind it
		value, rest := Show(rest)
		if value == "" {
			return "", reply
		}
		return "|{" + list + "} " + value, rest
	}
	return string(kind) + "[" + list + "]", rest
}

// quote shortens a long text.
func quote(text string) string {
	if len(text) <= longest {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%q... (%d bytes, %08x)", text[:20], len(text), crc32.ChecksumIEEE([]byte(text)))
}

// Repeats writes lines that follow each other four times or more as one, with their number behind it.
func Repeats(lines []string) (short []string) {
	for i, j := 0, 0; i < len(lines); i = j {
		for j = i; j < len(lines) && lines[j] == lines[i]; j++ {
		}
		if j-i < 4 {
			short = append(short, lines[i:j]...)
			continue
		}
		short = append(short, fmt.Sprintf("%s x%d", lines[i], j-i))
	}
	return short
}

var repeated = regexp.MustCompile(`^(.*) x(\d+)$`)

// Repeated tells how many lines a line of Repeats stands for.
func Repeated(line string) int {
	if parts := repeated.FindStringSubmatch(line); parts != nil {
		if n, err := strconv.Atoi(parts[2]); err == nil {
			return n
		}
	}
	return 1
}

// masked are the parts of a reply that differ between two runs.
var masked = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`"id" :\d+`), `"id" :N`},
	{regexp.MustCompile(`"version" "[^"]*"`), `"version" "N"`},
	{regexp.MustCompile(`"(first|last)" "[^"]*"`), `"$1" "N"`},
	{regexp.MustCompile(`^\+\d+\.\d+ \[(\d+) [^\]]*\]`), `+TIME [$1 WHO]`},
	{regexp.MustCompile(`(\\n|\b)(id|client|addr|laddr|fd|age|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem)=[^ ]*`), `$1$2=N`},
	{regexp.MustCompile(`flags=U `), `flags=N `}, // U: over a Unix socket
	{regexp.MustCompile(`flags=([^ U]*)U`), `flags=$1`},
	{regexp.MustCompile(`from \d{4}-\d\d-\d\dT[\d:]+Z`), `from TIME`},
	{regexp.MustCompile(` lib-name= lib-ver=`), ``}, // which Redis 7.0 does not have
}

// Mask hides what differs between two runs: ids, addresses, ages, sizes and times. It shortens a long line.
func Mask(line string) string {
	for _, m := range masked {
		line = m.pattern.ReplaceAllString(line, m.instead)
	}
	if len(line) > 5*longest {
		line = fmt.Sprintf("%s... (%d bytes, %08x)", line[:40], len(line), crc32.ChecksumIEEE([]byte(line)))
	}
	return line
}
