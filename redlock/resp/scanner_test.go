package resp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// replyValues are whole top-level values, each with the kind it is to be seen as.
var replyValues = []struct {
	raw  string
	kind byte
}{
	{"+OK\r\n", '+'},
	{"+\r\n", '+'},
	{"+a\rb\nc\n\r\r\n", '+'}, // only \r\n ends a line
	{"-ERR no\r\n", '-'},
	{":1\r\n", ':'},
	{":-9223372036854775808\r\n", ':'},
	{"$0\r\n\r\n", '$'},
	{"$5\r\nhello\r\n", '$'},
	{"$4\r\n\r\n\r\n\r\n", '$'},
	{"$-1\r\n", '$'},
	{"*-1\r\n", '*'},
	{"*0\r\n", '*'},
	{"*3\r\n:1\r\n$1\r\na\r\n*-1\r\n", '*'},
	{"*2\r\n*2\r\n*0\r\n+a\r\n*1\r\n*1\r\n$-1\r\n", '*'},
	{"_\r\n", '_'},
	{"#t\r\n", '#'},
	{",3.25e-7\r\n", ','},
	{",inf\r\n", ','},
	{"(3492890328409238509324850943850943825024385\r\n", '('},
	{"!21\r\nSYNTAX invalid syntax\r\n", '!'},
	{"=15\r\ntxt:Some string\r\n", '='},
	{"%0\r\n", '%'},
	{"%2\r\n+a\r\n:1\r\n+b\r\n%1\r\n+c\r\n_\r\n", '%'},
	{"~2\r\n#t\r\n~1\r\n:5\r\n", '~'},
	{">3\r\n+message\r\n+channel\r\n$2\r\nhi\r\n", '>'},
	{">0\r\n", '>'},
	// An attribute belongs to the value after it, at any depth.
	{"|1\r\n+key\r\n%1\r\n+a\r\n,0.1\r\n*2\r\n:1\r\n:2\r\n", '*'},
	{"|0\r\n:1\r\n", ':'},
	{"|1\r\n+a\r\n+b\r\n|1\r\n+c\r\n+d\r\n$1\r\nx\r\n", '$'},
	{"*2\r\n:1\r\n|1\r\n+ttl\r\n:3600\r\n:2\r\n", '*'},
	{"*1\r\n|1\r\n|1\r\n+a\r\n+b\r\n+k\r\n+v\r\n:2\r\n", '*'},
	{"|1\r\n+a\r\n+b\r\n>1\r\n+x\r\n", '>'},
	// A push inside an aggregate is none of its elements.
	{"*2\r\n>2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n:1\r\n", '*'},
	{"*1\r\n>0\r\n>1\r\n>1\r\n+a\r\n+b\r\n+OK\r\n", '*'},
	{"%1\r\n+a\r\n>1\r\n+p\r\n*1\r\n>1\r\n+p\r\n+b\r\n", '%'},
	{strings.Repeat("*1\r\n", maxNesting) + ":1\r\n", '*'},
}

// With PushCounts a push is an element like any other, and still none of an attribute's.
func TestScannerCountsPushes(t *testing.T) {
	for _, raw := range []string{
		"*1\r\n>3\r\n+subscribe\r\n+a\r\n:1\r\n",
		"*2\r\n>3\r\n+unsubscribe\r\n_\r\n:0\r\n+PONG\r\n",
		"*1\r\n|1\r\n+key\r\n+value\r\n>1\r\n+a\r\n",
		">1\r\n+a\r\n",
	} {
		scanner := Scanner{PushCounts: true}
		n, done, err := scanner.Scan([]byte(raw + "+next\r\n"))
		if n != len(raw) || !done || err != nil {
			t.Errorf("%q: %d bytes, %t, %v", raw, n, done, err)
		}
	}
}

var malformedReplies = []struct {
	raw  string
	want error
}{
	{"x", errType},
	{"\r\n", errType},
	{"*1\r\n\x00", errType},
	{"$?\r\n", errLength},
	{"*?\r\n", errLength},
	{"$\r\n", errLength},
	{"$-\r\n", errLength},
	{"$-2\r\n", errLength},
	{"*-2\r\n", errLength},
	{"%-1\r\n", errLength},
	{"~-1\r\n", errLength},
	{"!-1\r\n", errLength},
	{">-1\r\n", errLength},
	{"$--1\r\n", errLength},
	{"$1-\r\n", errLength},
	{"$+1\r\n", errLength},
	{"$ 1\r\n", errLength},
	{"$1\n", errLength},
	{"$1\rx", errLength},
	{"$9223372036854775807\r\n", errLength},
	{"*18446744073709551617\r\n", errLength},
	{"%9999999999999999999\r\n", errLength},
	{"$1\r\nabc", errBulkEnd},
	{"$1\r\na\rb", errBulkEnd},
	{strings.Repeat("*1\r\n", maxNesting+1), errNesting},
	{strings.Repeat("|1\r\n", maxNesting+1), errNesting},
}

func TestScannerEndsEachValueHoweverItIsCut(t *testing.T) {
	for _, v := range replyValues {
		// What follows must not be touched, whatever it is.
		stream := v.raw + "\x00rest"
		for cut := 0; cut <= len(v.raw); cut = nextCut(cut, len(v.raw)) {
			var s Scanner
			n, done, err := s.Scan([]byte(stream[:cut]))
			if err != nil || n != cut || done != (cut == len(v.raw)) {
				t.Fatalf("%q cut at %d: first part: n=%d done=%v err=%v", v.raw, cut, n, done, err)
			}
			if !done {
				n, done, err = s.Scan([]byte(stream[cut:]))
				if err != nil || n != len(v.raw)-cut || !done {
					t.Fatalf("%q cut at %d: second part: n=%d done=%v err=%v", v.raw, cut, n, done, err)
				}
			}
			if s.Kind() != v.kind {
				t.Fatalf("%q cut at %d: kind %q, want %q", v.raw, cut, s.Kind(), v.kind)
			}
		}
	}
}

func TestScannerTakesValueAfterValue(t *testing.T) {
	var stream []byte
	var ends []int
	var kinds []byte
	for _, v := range replyValues {
		stream = append(stream, v.raw...)
		ends = append(ends, len(stream))
		kinds = append(kinds, v.kind)
	}
	for _, size := range []int{1, 2, 3, 7, 64, len(stream)} {
		gotEnds, gotKinds, err := scanIn(stream, size)
		if err != nil || !slices.Equal(gotEnds, ends) || !bytes.Equal(gotKinds, kinds) {
			t.Errorf("in pieces of %d: ends %v kinds %q err %v\nwant %v %q", size, gotEnds, gotKinds, err, ends, kinds)
		}
	}
}

func TestScannerRefusesMalformedForGood(t *testing.T) {
	for _, m := range malformedReplies {
		for size := 1; size <= len(m.raw); size = nextCut(size, len(m.raw)) {
			if ends, _, err := scanIn([]byte(m.raw), size); !errors.Is(err, m.want) || len(ends) > 0 {
				t.Fatalf("%q in pieces of %d: ends %v, error %v, want %v", m.raw, size, ends, err, m.want)
			}
		}
		var s Scanner
		_, _, first := s.Scan([]byte(m.raw))
		if n, done, err := s.Scan([]byte("+OK\r\n")); n != 0 || done || err != first {
			t.Errorf("%q: scanned on after the error: n=%d done=%v err=%v", m.raw, n, done, err)
		}
	}
}

func TestScannerKindIsKnownFromTheFirstByte(t *testing.T) {
	var s Scanner
	for _, step := range []struct {
		bytes string
		kind  byte
	}{
		{"", 0}, {"|1\r\n+a\r\n", 0}, {"+b\r\n", 0}, {"*", '*'}, {"1\r\n$1\r\nx\r\n", '*'}, {"", '*'}, {"|", 0}, {"0\r\n:", ':'},
	} {
		if _, _, err := s.Scan([]byte(step.bytes)); err != nil || s.Kind() != step.kind {
			t.Errorf("after %q: kind %q, want %q (error %v)", step.bytes, s.Kind(), step.kind, err)
		}
	}
}

func TestScannerBoundsALine(t *testing.T) {
	var s Scanner
	piece := bytes.Repeat([]byte("x"), 1<<20)
	if _, _, err := s.Scan([]byte("+")); err != nil {
		t.Fatal(err)
	}
	var err error
	sent := 0
	for err == nil && sent < maxLine+2*len(piece) {
		_, _, err = s.Scan(piece)
		sent += len(piece)
	}
	if !errors.Is(err, errLine) || sent < maxLine {
		t.Errorf("after %d bytes: %v, want %v", sent, err, errLine)
	}
}

func TestScannerDoesNotAllocate(t *testing.T) {
	stream := []byte("+OK\r\n$5\r\nhello\r\n*2\r\n*1\r\n:1\r\n$-1\r\n%1\r\n+a\r\n,1.5\r\n")
	var s Scanner
	if n := testing.AllocsPerRun(100, func() {
		for p := stream; len(p) > 0; {
			n, _, _ := s.Scan(p)
			p = p[n:]
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// nextCut is where to cut a value of this length after this place: everywhere, or
// near both ends and here and there between if it is long.
func nextCut(at, length int) int {
	if at < 100 || at >= length-100 {
		return at + 1
	}
	return min(at+331, length-100)
}

// scanIn scans stream in pieces of the given size and tells where values ended.
func scanIn(stream []byte, size int) (ends []int, kinds []byte, err error) {
	var s Scanner
	at := 0
	for piece := range slices.Chunk(stream, size) {
		for len(piece) > 0 {
			n, done, err := s.Scan(piece)
			at += n
			piece = piece[n:]
			if err != nil {
				return ends, kinds, err
			}
			if done {
				ends = append(ends, at)
				kinds = append(kinds, s.Kind())
			} else if len(piece) > 0 {
				return ends, kinds, fmt.Errorf("stopped %d bytes short inside a value", len(piece))
			}
		}
	}
	return ends, kinds, nil
}

func FuzzScanner(f *testing.F) {
	for _, v := range replyValues {
		f.Add([]byte(v.raw), uint8(3))
	}
	for _, m := range malformedReplies {
		f.Add([]byte("+OK\r\n"+m.raw), uint8(2))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		ends, kinds, err := scanIn(stream, max(1, len(stream)))
		gotEnds, gotKinds, gotErr := scanIn(stream, int(size)+1)
		if !slices.Equal(ends, gotEnds) || !bytes.Equal(kinds, gotKinds) || err != gotErr {
			t.Errorf("whole: %v %q %v\npieces: %v %q %v", ends, kinds, err, gotEnds, gotKinds, gotErr)
		}
		from := 0
		for i, end := range ends {
			if strings.IndexByte("*~%>", kinds[i]) >= 0 {
				if _, err := Elements(stream[from:end]); err != nil {
					t.Errorf("elements of %q: %v", stream[from:end], err)
				}
			}
			from = end
		}
	})
}

func BenchmarkScanner(b *testing.B) {
	for _, bench := range []struct{ name, raw string }{
		{"status", "+OK\r\n"},
		{"bulk", "$5\r\nhello\r\n"},
		{"array", "*3\r\n$3\r\nfoo\r\n:12345\r\n$3\r\nbar\r\n"},
		{"megabyte", "$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			raw := []byte(bench.raw)
			var s Scanner
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, done, err := s.Scan(raw); !done || err != nil {
					b.Fatal(done, err)
				}
			}
		})
	}
}

// A bounded value has no more bytes and announces no more, wherever it is cut.
func TestScannerBoundsAValue(t *testing.T) {
	const most = 40
	for _, row := range []struct {
		raw string
		err error
	}{
		{"$33\r\n" + strings.Repeat("x", 33) + "\r\n", nil},
		{"*12\r\n" + strings.Repeat("+\r\n", 11) + "_\r\n", errTooLong}, // 41
		{"*11\r\n" + strings.Repeat("+\r\n", 11), nil},
		{"$34\r\n", nil}, // its end is seen then
		{"$36\r\n", errTooLong},
		{"$999999999999999999\r\n", errTooLong},
		{"*13\r\n", errTooLong},
		{"*999999999999999999\r\n", errTooLong},
		{"%999999999999999999\r\n", errTooLong},
		{"*6\r\n%6\r\n", errTooLong},
		{"*1\r\n*1\r\n$999999999999999999\r\n", errTooLong},
		{"+" + strings.Repeat("x", 37) + "\r\n", nil},
		{"+" + strings.Repeat("x", 38) + "\r\n", errTooLong},
		{strings.Repeat("|1\r\n+a\r\n+b\r\n", 4), errTooLong},
		{"*1\r\n" + strings.Repeat(">1\r\n+a\r\n", 5), errTooLong},
	} {
		for cut := range len(row.raw) + 1 {
			s := Scanner{MaxBytes: most}
			n, _, err := s.Scan([]byte(row.raw[:cut]))
			if err == nil {
				_, _, err = s.Scan([]byte(row.raw[n:]))
			}
			if err != row.err {
				t.Errorf("%.30q cut at %d: %v, want %v", row.raw, cut, err, row.err)
			}
		}
	}
	s := Scanner{MaxBytes: most}
	for range 10 { // each value has the whole bound
		if _, done, err := s.Scan([]byte("$33\r\n" + strings.Repeat("x", 33) + "\r\n")); !done || err != nil {
			t.Fatal(done, err)
		}
	}
}

func TestScannerOfRESP2RefusesTheRest(t *testing.T) {
	for _, v := range replyValues {
		s := Scanner{RESP2: true}
		_, done, err := s.Scan([]byte(v.raw))
		old := !strings.ContainsAny(v.raw, "_#,(!=%~>|")
		if old != (done && err == nil) || !old && err != errType && !strings.Contains("+-$", v.raw[:1]) {
			t.Errorf("%q: done=%v err=%v", v.raw, done, err)
		}
	}
}
