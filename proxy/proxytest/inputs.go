package proxytest

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
)

// Password is the password of the server that gets the inputs with Locked.
const Password = "secret"

// Input is a possible input of a client.
type Input struct {
	Bytes  string
	Err    string // the error reply behind the replies to its commands; "" if there is none
	Locked bool   // the server requires Password
	// Refused says that Redis answers with NOAUTH, although it would end the connection if the commands came as arrays.
	Refused bool
}

//go:embed inputs.txt
var inputs string

// Inputs returns well-formed, odd, unfinished and malformed inputs: those of inputs.txt.
func Inputs() (list []Input) {
	for line := range strings.Lines(inputs) {
		line = strings.TrimSuffix(line, "\n")
		refusal, isRefusal := strings.CutPrefix(line, "    -")
		switch {
		case isRefusal:
			list[len(list)-1].Err = "-" + refusal + "\r\n"
		case !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "#") && strings.Contains(line, `"`):
			list = append(list, ParseInput(line))
		}
	}
	return list
}

// ParseInput reads an input as inputs.txt has it, without Err.
func ParseInput(line string) Input {
	return Input{Bytes: Unquote(line), Locked: strings.HasPrefix(line, "locked"), Refused: strings.HasPrefix(line, "locked, refused")}
}

var pieces = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\*\d+)?`)

// Unquote reads bytes in Go's quotes: "first" "again"*3 is first and three times again. It panics if they are none.
func Unquote(line string) string {
	var bytes strings.Builder
	for _, piece := range pieces.FindAllString(line, -1) {
		end := strings.LastIndex(piece, `"`) + 1
		text, err := strconv.Unquote(piece[:end])
		if err != nil {
			panic(piece + ": " + err.Error())
		}
		times := 1
		if end < len(piece) {
			times, _ = strconv.Atoi(piece[end+1:])
		}
		bytes.WriteString(strings.Repeat(text, times))
	}
	return bytes.String()
}
