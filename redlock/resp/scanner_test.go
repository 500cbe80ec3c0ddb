package resp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestScannerTakesValueAfterValue(t *testing.T) {
	var stream []byte
	var ends []int
	var kinds []byte
	whole, malformed := values(t)
	for _, v := range whole {
		stream = append(stream, v.raw...)
		ends = append(ends, len(stream))
		kinds = append(kinds, v.kind)
	}
	for _, size := range []int{1, 2, 3, 7, 64, len(stream)} {
		gotEnds, gotKinds, err := scanIn(stream, size)
		if err != nil || !slices.Equal(gotEnds, ends) || !bytes.Equal(gotKinds, kinds) {
			t.Errorf("in pieces of %d: ends %v kinds %q err %v\nwant %v %q", size, gotEnds, gotKinds, err, ends, kinds)
		}
		for _, raw := range malformed {
			if ends, _, err := scanIn([]byte(raw), size); err == nil || len(ends) > 0 {
				t.Errorf("%.30q in pieces of %d: ends %v, error %v", raw, size, ends, err)
			}
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
	whole, malformed := values(f)
	for _, v := range whole {
		f.Add([]byte(v.raw), uint8(3))
	}
	for _, raw := range malformed {
		f.Add([]byte("+OK\r\n"+raw), uint8(2))
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

// Each value has the whole bound.
func TestScannerBoundsEachValue(t *testing.T) {
	s := Scanner{MaxBytes: 40}
	for range 10 {
		if _, done, err := s.Scan([]byte("$33\r\n" + strings.Repeat("x", 33) + "\r\n")); !done || err != nil {
			t.Fatal(done, err)
		}
	}
}
