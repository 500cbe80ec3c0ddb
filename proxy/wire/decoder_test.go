package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/redcon"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/proxytest"
)

// decoded is what a decoder found in an input.
type decoded struct {
	commands [][][]byte
	raws     [][]byte
	kept     int // bytes of an unfinished command
	err      error
}

// feed passes pieces of an input to a decoder as a session does. It appends each piece
// to one buffer and drops what the decoder has read. It runs AUTH before it asks for
// the command behind it.
func feed(t testing.TB, d *Decoder, pieces ...[]byte) decoded {
	var got decoded
	var buf []byte
	for _, piece := range pieces {
		buf = append(buf, piece...)
		for {
			before := slices.Clone(buf)
			cmd, n, ok, need, err := d.Next(buf)
			if !bytes.Equal(buf, before) {
				t.Fatalf("the decoder changed the input from %q to %q", before, buf)
			}
			if n > len(buf) || ok && (len(cmd.Args) == 0 || cmd.Raw[0] != '*') || need != 0 && (ok || need <= len(buf)-n) {
				t.Fatalf("of %q: command %q, args %q, n=%d ok=%v need=%d", buf, cmd.Raw, cmd.Args, n, ok, need)
			}
			if ok {
				got.commands = append(got.commands, cloneArgs(cmd.Args))
				got.raws = append(got.raws, bytes.Clone(cmd.Raw))
				if sameArgs(cmd.Args, []string{"AUTH", proxytest.Password}) {
					d.SetAuthenticated(true)
				}
			}
			buf = slices.Clone(buf[n:]) // at another address: the decoder must not depend on it
			if err != nil {
				got.err = err
				return got
			}
			if !ok {
				break
			}
		}
	}
	got.kept = len(buf)
	return got
}

func newTestDecoder(locked bool) *Decoder {
	d := NewDecoder(RedisLimits)
	d.SetAuthenticated(!locked)
	return d
}

// refusal returns the error reply to the input, or "" if all of it was valid.
func (d decoded) refusal() Error {
	wrong, _ := errors.AsType[ProtocolError](d.err)
	return wrong.Text
}

// However an input is cut, the decoder finds the same in it.
func TestDecoderHoweverInputIsCut(t *testing.T) {
	datatest.Play(t, "../proxytest/inputs.txt", func(t *testing.T, script *datatest.Script) {
		for event := range script.Events {
			input := proxytest.ParseInput(event)
			all := feed(t, newTestDecoder(input.Locked), []byte(input.Bytes))
			for line := range strings.Lines(all.String()) {
				script.Printf("%s", line)
			}
			for _, cut := range proxytest.Cuts(input.Bytes) {
				got := feed(t, newTestDecoder(input.Locked), []byte(input.Bytes[:cut]), []byte(input.Bytes[cut:]))
				if got.String() != all.String() {
					t.Fatalf("%.100q cut at %d: %.200s, want %.200s", input.Bytes, cut, got, all)
				}
			}
			if len(input.Bytes) < 1000 {
				got := feed(t, newTestDecoder(input.Locked), slices.Collect(slices.Chunk([]byte(input.Bytes), 1))...)
				if got.String() != all.String() {
					t.Fatalf("%.100q byte by byte: %.200s, want %.200s", input.Bytes, got, all)
				}
			}
		}
	})
}

// String shows the commands, and what is wrong behind them or not yet whole.
func (d decoded) String() string {
	var lines []string
	for _, args := range d.commands {
		line, _ := proxytest.Show(proxytest.EncodeCommand(args...))
		lines = append(lines, line)
	}
	lines = proxytest.Repeats(lines)
	if d.err != nil {
		lines = append(lines, strings.TrimSpace(string(d.refusal())))
	} else if d.kept > 0 {
		lines = append(lines, fmt.Sprintf("and %d bytes that are not whole", d.kept))
	}
	return strings.Join(lines, "\n")
}

// An array stays as it came, and an inline command becomes one.
func TestDecoderKeepsRawBytes(t *testing.T) {
	got := feed(t, newTestDecoder(false), []byte("\r\n*0\r\n*1\rX$4\r\nPING__\nPING\r\n  ECHO \"a b\"\n*1\r\n$4\r\nPING\r\n*-1\r\n"))
	want := []string{"*1\rX$4\r\nPING__", "*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$3\r\na b\r\n", "*1\r\n$4\r\nPING\r\n"}
	if !sameArgs(got.raws, want) || got.err != nil || got.kept != 0 {
		t.Errorf("%q kept %d error %v, want %q", got.raws, got.kept, got.err, want)
	}
}

func TestDecoderSaysWhatItNeeds(t *testing.T) {
	d := newTestDecoder(false)
	for _, step := range []struct {
		buf     string
		n, need int
	}{
		{"", 0, 0},
		{"\r\n*0\r\n", 6, 0},
		{"\r\n*2\r\n", 2, 0},
		{"*2\r\n$4\r", 0, 0},
		{"*2\r\n$4\r\n", 0, 14},
		{"*2\r\n$4\r\nECHO\r\n$1000\r\n", 0, 1023},
		{"*2\r\n$4\r\nECHO\r\n$1000\r\nabc", 0, 1023},
	} {
		_, n, ok, need, err := d.Next([]byte(step.buf))
		if n != step.n || ok || need != step.need || err != nil {
			t.Errorf("%q: n=%d ok=%v need=%d err=%v, want n=%d need=%d", step.buf, n, ok, need, err, step.n, step.need)
		}
	}
}

// testdata/limits.txt asks what a decoder with other limits finds: their numbers stand before the input.
func TestDecoderConfiguredLimits(t *testing.T) {
	datatest.Play(t, "testdata/limits.txt", func(t *testing.T, script *datatest.Script) {
		for event := range script.Events {
			limits := RedisLimits
			d := NewDecoder(limits) // begins locked
			if !strings.HasPrefix(event, `"`) {
				if _, err := fmt.Sscanf(event, "bulk %d multibulk %d inline %d", &limits.Bulk, &limits.Multibulk, &limits.Inline); err != nil {
					t.Fatalf("%s: %v", event, err)
				}
				d = NewDecoder(limits)
				d.SetAuthenticated(true)
			}
			for line := range strings.Lines(feed(t, d, []byte(proxytest.Unquote(event))).String()) {
				script.Printf("%s", line)
			}
		}
	})
}

func TestDecoderLetsGoOfTheLastCommand(t *testing.T) {
	d := newTestDecoder(false)
	if got := feed(t, d, proxytest.EncodeCommand(slices.Repeat([][]byte{[]byte("a")}, 5000)...)); len(got.commands) != 1 {
		t.Fatal(got.err)
	}
	if cap(d.args) > maxKeptArgs {
		t.Errorf("%d argument slots kept", cap(d.args))
	}
	feed(t, d, []byte("*1\r\n$4\r\nPING\r\n*1"))
	for _, arg := range d.args[:cap(d.args)] {
		if arg != nil {
			t.Errorf("%q kept", arg)
		}
	}
}

func TestDecoderDoesNotAllocate(t *testing.T) {
	d := newTestDecoder(false)
	for _, text := range []string{"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n", "*1\rX$4\r\nPING\r\n", "*0\r\n\r\n"} {
		input := []byte(text)
		if n := testing.AllocsPerRun(100, func() {
			if _, n, _, _, err := d.Next(input); n != len(input) || err != nil {
				t.Fatal(n, err)
			}
		}); n != 0 {
			t.Errorf("%q: %v allocations", input, n)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, input := range proxytest.Inputs() {
		if len(input.Bytes) < 2000 {
			f.Add([]byte(input.Bytes), uint8(4), input.Locked)
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, size uint8, locked bool) {
		whole := feed(t, newTestDecoder(locked), input)
		pieces := feed(t, newTestDecoder(locked), slices.Collect(slices.Chunk(input, int(size)+1))...)
		same := func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
		if !slices.EqualFunc(whole.commands, pieces.commands, same) || !same(whole.raws, pieces.raws) || whole.kept != pieces.kept || whole.err != pieces.err {
			t.Errorf("whole:  %q %v\npieces: %q %v", whole.commands, whole.err, pieces.commands, pieces.err)
		}
		if whole.err != nil && whole.refusal() == "" {
			t.Errorf("error %v is not a ProtocolError", whole.err)
		}
		rest := input
		for i, raw := range whole.raws {
			standard := proxytest.EncodeCommand(whole.commands[i]...)
			if at := bytes.Index(rest, raw); at >= 0 {
				rest = rest[at+len(raw):]
			} else if !bytes.Equal(raw, standard) { // an inline command becomes that
				t.Fatalf("raw %q is not in the input", raw)
			}
			// The standard form of a command must give the same command.
			again := feed(t, newTestDecoder(false), standard)
			if len(again.commands) != 1 || !same(again.commands[0], whole.commands[i]) {
				t.Errorf("%q became %q", whole.commands[i], again.commands)
			}
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	for _, bench := range []struct{ name, input string }{
		{"get", "*2\r\n$3\r\nGET\r\n$8\r\nsome-key\r\n"},
		{"set-nx-px", "*6\r\n$3\r\nSET\r\n$8\r\nlock:abc\r\n$20\r\n01234567890123456789\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n"},
		{"odd", "*2\r\n$3\r\nGET\r\n$8\r\nsome-key__"},
		{"megabyte", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n"},
		{"inline", "GET some-key\r\n"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			input := []byte(bench.input)
			d := newTestDecoder(false)
			b.ReportAllocs()
			b.SetBytes(int64(len(input)))
			for b.Loop() {
				if _, _, ok, _, err := d.Next(input); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
	// For comparison: redcon without the decoder.
	b.Run("redcon-alone-set-nx-px", func(b *testing.B) {
		input := proxytest.EncodeCommand([]byte("SET"), []byte("lock:abc"), []byte("01234567890123456789"), []byte("NX"), []byte("PX"), []byte("30000"))
		var args [][]byte
		b.ReportAllocs()
		b.SetBytes(int64(len(input)))
		for b.Loop() {
			var ok bool
			if ok, args, _, _, _ = redcon.ReadNextCommand(input, args); !ok {
				b.Fatal("incomplete")
			}
		}
	})
	// A command that arrives byte by byte must not be checked from its beginning each
	// time.
	b.Run("byte-by-byte", func(b *testing.B) {
		input := []byte("*2000\r\n" + strings.Repeat("$3\r\nabc\r\n", 2000))
		d := newTestDecoder(false)
		b.ReportAllocs()
		b.SetBytes(int64(len(input)))
		for b.Loop() {
			for i := range input {
				if _, _, ok, _, err := d.Next(input[:i+1]); ok != (i+1 == len(input)) || err != nil {
					b.Fatal(i, ok, err)
				}
			}
		}
	})
}

func sameArgs(args [][]byte, want []string) bool {
	return slices.EqualFunc(args, want, func(a []byte, w string) bool { return string(a) == w })
}

func cloneArgs(args [][]byte) [][]byte {
	clone := make([][]byte, len(args))
	for i, arg := range args {
		clone[i] = bytes.Clone(arg)
	}
	return clone
}
