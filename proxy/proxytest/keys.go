package proxytest

import (
	_ "embed"
	"strings"
)

//go:embed keys.txt
var keys string

// KeyExamples holds examples of the commands whose keys do not follow from the number
// of arguments alone: the lines of keys.txt.
var KeyExamples = strings.Split(strings.TrimSuffix(keys, "\n"), "\n")
