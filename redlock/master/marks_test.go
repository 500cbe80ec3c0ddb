package master

import (
	"strings"
	"testing"

	"redlock-proxy/redlock/roster"
)

// An edit keeps the record of the longest TTL or turns it, as it was planned.
func TestWhatAnEditDoesWithTheRecord(t *testing.T) {
	for _, row := range []struct {
		write roster.Write
		want  string
	}{
		{roster.Write{Kind: roster.EditAll}, "keep"},
		{roster.Write{Kind: roster.EditAll, Turn: true}, "turn"},
	} {
		command := string(AppendMark(nil, row.write, 0))
		for _, word := range []string{"keep", "turn"} {
			if has := strings.Contains(command, "\r\n"+word+"\r\n"); has != (word == row.want) {
				t.Errorf("%+v: it says %s: %v", row.write, word, has)
			}
		}
	}
}
