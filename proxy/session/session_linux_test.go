package session

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// A large command is read and performed away from the loop, where it delays nobody else.
func TestLargeCommandsLeaveTheLoop(t *testing.T) {
	_, client := startOnLoop(t, io.Discard)
	ask(t, client, "WHERE\r\n", "+loop\r\n")
	ask(t, client, fmt.Sprintf("*2\r\n$5\r\nWHERE\r\n$1000000\r\n%s\r\n", strings.Repeat("x", 1_000_000)), "+away\r\n")
	ask(t, client, "WHERE\r\n", "+loop\r\n")
}
