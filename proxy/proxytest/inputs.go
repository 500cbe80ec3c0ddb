package proxytest

import (
	"slices"
	"strings"
)

// Password is the password of the server that gets the inputs with Locked.
const Password = "secret"

// Input is a possible input of a client, with the expected result. The unit tests check
// it against the decoder. TestDecoderAgreesWithRedis also checks it against a Redis
// server.
type Input struct {
	Bytes    string
	Commands [][]string // the commands that run, in order
	Err      string     // the error reply behind their replies; "" if there is none
	Locked   bool       // the server requires Password
	Answer   string     // Redis's answer, if it differs from that to Commands sent as arrays
}

// Redis's answers to bytes that are no command.
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
	// line64K has the largest length that an unfinished line may have.
	line64K = strings.Repeat("x", 64<<10)
)

func accepted(bytes string, commands ...[]string) Input {
	return Input{Bytes: bytes, Commands: commands}
}

func refused(bytes string, err string, commands ...[]string) Input {
	return Input{Bytes: bytes, Err: err, Commands: commands}
}

// Inputs returns well-formed, odd, unfinished and malformed inputs.
func Inputs() []Input {
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
	for _, line := range InlineLines {
		if line.Args == nil {
			inputs = append(inputs, refused("PING\n"+line.Text+"\r\nPING\r\n", saysQuotes, ping))
		} else {
			inputs = append(inputs, accepted(line.Text+"\nPING\r\n", line.Args, ping))
		}
	}
	return inputs
}

var wellFormedInputs = []Input{
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

// Redis ignores some input, and accepts some that is not RESP: it does not read the byte
// behind the \r of a line, nor the two bytes behind an argument.
var oddInputs = []Input{
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

var unfinishedInputs = []Input{
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
	// Redis searches line ends as in a C string, so a NUL hides them.
	accepted("\x00"),
	accepted("PING\x00\r\nPING\r\n"),
	accepted("*1\x00\r\n$4\r\nPING\r\n"),
	accepted("*1\r\n$4\x00\r\nPING\r\n"),
	accepted("*1\r\n\x00$4\r\nPING\r\n"),
}

var malformedInputs = []Input{
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

var lockedInputs = []Input{
	{Locked: true, Bytes: "PING\r\nAUTH wrong\r\nAUTH secret\r\nECHO hi\r\n", Commands: [][]string{ping, {"AUTH", "wrong"}, {"AUTH", Password}, hi}},
	{Locked: true, Bytes: "MULTI\r\nGET lock:a\r\nDISCARD\r\nEXEC\r\nEXEC a\r\nCLIENT nosuch a\r\nGET\r\n",
		Commands: [][]string{{"MULTI"}, {"GET", "lock:a"}, {"DISCARD"}, {"EXEC"}, {"EXEC", "a"}, {"CLIENT", "nosuch", "a"}, {"GET"}}},
	{Locked: true, Bytes: "*10\r\n" + strings.Repeat("$1\r\na\r\n", 10), Commands: [][]string{slices.Repeat([]string{"a"}, 10)}},
	{Locked: true, Bytes: "PING\n*11\r\n", Commands: [][]string{ping}, Err: saysCountBeforeAuth},
	{Locked: true, Bytes: "*2147483648\r\n", Err: saysCount},
	{Locked: true, Bytes: "*-11\r\nPING\r\n", Commands: [][]string{ping}},
	{Locked: true, Bytes: "*2\r\n$4\r\nECHO\r\n$16384\r\n" + line64K[:16384] + "\r\n", Commands: [][]string{{"ECHO", line64K[:16384]}}},
	{Locked: true, Bytes: "*2\r\n$4\r\nECHO\r\n$16385\r\n", Err: saysLengthBeforeAuth},
	{Locked: true, Bytes: "*1\r\n$536870913\r\n", Err: saysLength},
	{Locked: true, Bytes: "ECHO " + line64K[:20000] + "\r\n", Commands: [][]string{{"ECHO", line64K[:20000]}}, Answer: noAuth},
	{Locked: true, Bytes: strings.Repeat("DEL ", 20) + "\r\n", Commands: [][]string{slices.Repeat([]string{"DEL"}, 20)}, Answer: noAuth},
	{Locked: true, Bytes: "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$4\r\nECHO\r\n$16385\r\n" + line64K[:16385] + "\r\n",
		Commands: [][]string{{"AUTH", Password}, {"ECHO", line64K[:16385]}}},
	{Locked: true, Bytes: "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*11\r\n" + strings.Repeat("$1\r\na\r\n", 11),
		Commands: [][]string{{"AUTH", Password}, slices.Repeat([]string{"a"}, 11)}},
}
