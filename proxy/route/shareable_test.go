package route

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestShareable compares the whole table with the list of commands that may go over a shared
// connection. Look at each command before you add it to the list: it must have exactly one reply,
// and neither change nor use its connection.
func TestShareable(t *testing.T) {
	text, err := os.ReadFile("testdata/shareable.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(text))
	var got []string
	for spec := range Builtin().All() {
		if spec.Is(Shareable) {
			got = append(got, spec.Name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the shareable commands are\n%s", strings.Join(got, "\n"))
	}
}

// A command that only a server knows is not shared, whatever the server says of it.
func TestForeignCommandIsNotShareable(t *testing.T) {
	foreign := []any{"module.get", int64(2), []any{"readonly"}, int64(1), int64(1), int64(1), []any{}, []any{}, []any{}, []any{}}
	table, err := Builtin().With([]any{foreign})
	if err != nil {
		t.Fatal(err)
	}
	spec := table.Lookup([][]byte{[]byte("module.get"), []byte("key")})
	if spec == nil || spec.Is(Shareable) {
		t.Errorf("%+v", spec)
	}
	if !table.Lookup([][]byte{[]byte("GET"), []byte("key")}).Is(Shareable) {
		t.Error("GET is not shareable any more")
	}
}
