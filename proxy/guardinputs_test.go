package proxy

import (
	"slices"
	"strings"
)

const guardPassword = "secret"

// guardInput is what a client might send and what must come of it. The unit
// tests hold the guard to it, TestGuardAgreesWithRedis a Redis server as well.
type guardInput struct {
	bytes    string
	commands [][]string // what is to be run, in order
	err      string     // the error reply behind it
	locked   bool       // the server asks for a password first
	answer   string     // Redis's, where the commands written as arrays would get another
}

// What Redis answers to bytes that are no command.
const (
	saysBigInline        = "-ERR Protocol error: too big inline request\r\n"
	saysQuotes           = "-ERR Protocol error: unbalanced quotes in request\r\n"
	saysBigCount         = "-ERR Protocol error: too big mbulk count string\r\n"
	saysCount            = "-ERR Protocol error: invalid multibulk length\r\n"
	saysCountBeforeAuth  = "-ERR Protocol error: unauthenticated multibulk length\r\n"
	saysBigLength        = "-ERR Protocol error: too big bulk count string\r\n"
	saysLength           = "-ERR Protocol error: invalid bulk length\r\n"
	saysLengthBeforeAuth = "-ERR Protocol error: unauthenticated bulk length\r\n"
)

var (
	ping = []string{"PING"}
	hi   = []string{"ECHO", "hi"}
	// line64K is as long as an unfinished line may be.
	line64K = strings.Repeat("x", 64<<10)
)

func accepted(bytes string, commands ...[]string) guardInput {
	return guardInput{bytes: bytes, commands: commands}
}

func refused(bytes string, err string, commands ...[]string) guardInput {
	return guardInput{bytes: bytes, err: err, commands: commands}
}

func guardInputs() []guardInput {
	inputs := slices.Concat(wellFormedInputs, oddInputs, unfinishedInputs, malformedInputs, lockedInputs)
	for _, count := range []string{"", "-", "+1", " 1", "1 ", "01", "00", "-0", "-01", "0x1", "1a", "a", "1\n", "\n1", "$4", "--1",
		"2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551617",
		"100000000000000000000", "-100000000000000000000", "99999999999999999999999999"} {
		inputs = append(inputs, refused("PING\r\n*"+count+"\r\n$4\r\nPING\r\n", saysCount, ping))
	}
	for _, length := range []string{"", "-", "-1", "-2", "-0", "+4", " 4", "4 ", "04", "4\n", "\n4", "x", "4x", "536870913", "2147483648",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551620"} {
		inputs = append(inputs, refused("PING\r\n*2\r\n$4\r\nECHO\r\n$"+length+"\r\nPING\r\n", saysLength, ping))
	}
	for _, got := range []string{"x", "*", ":", "+", "\n", "\r", "\t", "'", "%", "\x01", "\x80", "\xff"} {
		shown := strings.NewReplacer("\r", " ", "\n", " ").Replace(got)
		inputs = append(inputs, refused("*1\r\n"+got+"4\r\n", "-ERR Protocol error: expected '$', got '"+shown+"'\r\n"))
	}
	for _, line := range inlineLines {
		if line.args == nil {
			inputs = append(inputs, refused("PING\n"+line.text+"\r\nPING\r\n", saysQuotes, ping))
		} else {
			inputs = append(inputs, accepted(line.text+"\nPING\r\n", line.args, ping))
		}
	}
	return inputs
}

var wellFormedInputs = []guardInput{
	accepted("*1\r\n$4\r\nPING\r\n", ping),
	accepted("*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n*1\r\n$4\r\nPING\r\n", hi, ping),
	accepted("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", []string{"ECHO", ""}),
	accepted("*1\r\n$0\r\n\r\n", []string{""}),
	accepted("*2\r\n$4\r\nECHO\r\n$11\r\n\r\n*1\r\n$4\x00\r\n\r\n", []string{"ECHO", "\r\n*1\r\n$4\x00\r\n"}),
	accepted("*2\r\n$4\r\nECHO\r\n$40000\r\n"+line64K[:40000]+"\r\n", []string{"ECHO", line64K[:40000]}),
	accepted("*2\r\n$4\r\nECHO\r\n$100000\r\n"+line64K[:50000]+line64K[:50000]+"\r\nPING\n", []string{"ECHO", line64K[:50000] + line64K[:50000]}, ping),
	accepted("*13\r\n"+strings.Repeat("$1\r\na\r\n", 13), slices.Repeat([]string{"a"}, 13)),
	accepted(strings.Repeat("*1\r\n$4\r\nPING\r\n", 20), slices.Repeat([][]string{ping}, 20)...),
	accepted("*10\r\n"+strings.Repeat("$1\r\na\r\n", 10)+"a\nPING\n", slices.Repeat([]string{"a"}, 10), []string{"a"}, ping),
	accepted("PING\r\nPING\n  ECHO\thi \r\n", ping, ping, hi),
	accepted("PING\n"+line64K+"\n", ping, []string{line64K}),
}

// Redis ignores some input and takes some that is not RESP: nothing looks at
// what stands behind the \r of a line, or behind an argument.
var oddInputs = []guardInput{
	accepted("*0\r\n*1\r\n$4\r\nPING\r\n", ping),
	accepted("*-1\r\nPING\r\n", ping),
	accepted("*-2\r\n\r\n*-9223372036854775808\r\n\n*0\rxPING\r\n", ping),
	accepted("\r\n\r\n\n\nPING\r\n \t\v\f\r\r\nPING\n", ping, ping),
	accepted("*1\rX$4\rYPING__", ping),
	accepted("*2\r\n$4\r\nECHOab$2\r\nhi\r\n*1\r\n$4\r\nPING\n\n", hi, ping),
	accepted("*2\r\r$4\r\rECHO\r\r$2\r\rhi\r\rPING\r\n", hi, ping),
	accepted("*1\r*$4\r\nPING\r\n", ping),
	accepted("*1\r\n$2\r\nPING\r\n*1\r\n", []string{"PI"}),
	accepted("*1\r\x00$4\r\x00PING\x00\x00PING\r\n", ping, ping),
	accepted("$4\r\n", []string{"$4"}),
	accepted(" *1\r\nPING\r\n", []string{"*1"}, ping),
	accepted("ECHO\rhi\r\r\n", hi),
}

var unfinishedInputs = []guardInput{
	accepted("*"),
	accepted("*1"),
	accepted("*1\r"),
	accepted("*x\r"),
	accepted("*1\r\nx\n\n"),
	accepted("*2\r\n$4\r\nECHO\r\n$2\r\nhi\r"),
	accepted("*2\r\n$4\r\nECHO\r\n*1\r"),
	accepted("*1\n$4\nPING\n"),
	accepted("*2147483647\r\n$4\r\nPING\r\n"),
	accepted("*1\r\n$536870912\r\nx"),
	accepted("*" + line64K[1:]),
	accepted("*1\r\n$" + line64K[1:]),
	accepted("PING"),
	accepted("ECHO hi\r"),
	accepted(line64K),
	// Redis looks for line ends as in a C string: a NUL hides them.
	accepted("\x00"),
	accepted("PING\x00\r\nPING\r\n"),
	accepted("*1\x00\r\n$4\r\nPING\r\n"),
	accepted("*1\r\n$4\x00\r\nPING\r\n"),
	accepted("*1\r\n\x00$4\r\nPING\r\n"),
}

var malformedInputs = []guardInput{
	refused("*\rx", saysCount),
	refused("*"+line64K, saysBigCount),
	refused("*1\x00\r\n"+line64K, saysBigCount),
	refused("*1\r\n$"+line64K, saysBigLength),
	refused("*1\r\n$4\x00\r\n"+line64K, saysBigLength),
	refused("*1\r\n"+line64K+"x", saysBigLength),
	refused("*2\r\n$4\r\nECHO\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"),
	refused("*2\r\n$3\r\nECHO\r\n$2\r\nhi\r\n", "-ERR Protocol error: expected '$', got ' '\r\n"),
	refused("*1\r\n\r\n", "-ERR Protocol error: expected '$', got ' '\r\n"),
	refused(line64K+"x", saysBigInline),
	refused("PING\n"+line64K+"x", saysBigInline, ping),
	refused("PING\x00\r\n"+line64K, saysBigInline),
}

const noAuth = "-NOAUTH Authentication required.\r\n"

var lockedInputs = []guardInput{
	{locked: true, bytes: "PING\r\nAUTH wrong\r\nAUTH secret\r\nECHO hi\r\n", commands: [][]string{ping, {"AUTH", "wrong"}, {"AUTH", guardPassword}, hi}},
	{locked: true, bytes: "*10\r\n" + strings.Repeat("$1\r\na\r\n", 10), commands: [][]string{slices.Repeat([]string{"a"}, 10)}},
	{locked: true, bytes: "PING\n*11\r\n", commands: [][]string{ping}, err: saysCountBeforeAuth},
	{locked: true, bytes: "*2147483648\r\n", err: saysCount},
	{locked: true, bytes: "*-11\r\nPING\r\n", commands: [][]string{ping}},
	{locked: true, bytes: "*2\r\n$4\r\nECHO\r\n$16384\r\n" + line64K[:16384] + "\r\n", commands: [][]string{{"ECHO", line64K[:16384]}}},
	{locked: true, bytes: "*2\r\n$4\r\nECHO\r\n$16385\r\n", err: saysLengthBeforeAuth},
	{locked: true, bytes: "*1\r\n$536870913\r\n", err: saysLength},
	{locked: true, bytes: "ECHO " + line64K[:20000] + "\r\n", commands: [][]string{{"ECHO", line64K[:20000]}}, answer: noAuth},
	{locked: true, bytes: strings.Repeat("DEL ", 20) + "\r\n", commands: [][]string{slices.Repeat([]string{"DEL"}, 20)}, answer: noAuth},
	{locked: true, bytes: "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$4\r\nECHO\r\n$16385\r\n" + line64K[:16385] + "\r\n",
		commands: [][]string{{"AUTH", guardPassword}, {"ECHO", line64K[:16385]}}},
	{locked: true, bytes: "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*11\r\n" + strings.Repeat("$1\r\na\r\n", 11),
		commands: [][]string{{"AUTH", guardPassword}, slices.Repeat([]string{"a"}, 11)}},
}
