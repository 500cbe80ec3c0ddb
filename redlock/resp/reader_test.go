package resp

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// allOf returns the replies of a Reader, of which up to together are held at a time. The Reader reads n of them itself,
// or it is fed with all that there is.
func allOf(r *Reader, in io.Reader, fed bool, together, n int) (got []string, err error) {
	take := func(replies [][]byte) {
		for _, reply := range replies {
			got = append(got, string(reply))
		}
		r.Discard()
	}
	for !fed && len(got) < n {
		replies, err := r.Next(nil, min(together, n-len(got)))
		if err != nil {
			return got, err
		}
		take(replies)
	}
	for p := make([]byte, 4<<10); fed; {
		n, err := in.Read(p)
		if n == 0 && err == io.EOF {
			take(r.Fetched(nil))
			break
		}
		if err := r.Feed(p[:n]); err != nil {
			return got, err
		}
		clear(p[:n]) // Feed has made a copy
		for whole := true; whole; {
			if whole, err = r.Hold(together); err != nil {
				return got, err
			}
			if whole {
				take(r.Fetched(nil))
			}
		}
	}
	return got, nil
}

// However the bytes come, all replies are whole. Those that are longer than a limit are dropped, if the owner wants that.
func TestReaderGivesWholeReplies(t *testing.T) {
	const longest = 64
	var types []string
	whole, _ := values(t)
	for _, v := range whole {
		types = append(types, v.raw)
	}
	bulk := func(n int) string { return string(AppendBulk(nil, strings.Repeat("x", n))) }
	long := []string{
		":1\r\n", bulk(longest - 7), bulk(longest - 6), bulk(1), bulk(50 * longest), "*2\r\n" + bulk(50) + bulk(50),
		bulk(50 * longest), "+OK\r\n", "-" + strings.Repeat("e", longest) + "\r\n", "$-1\r\n",
	}
	for _, row := range []struct {
		replies []string
		longest int64
	}{{types, 0}, {long, longest}} {
		want := slices.Clone(row.replies)
		for i, reply := range want {
			if row.longest > 0 && len(reply) > longest {
				want[i] = string(tooLong)
			}
		}
		for name, in := range map[string]func(io.Reader) io.Reader{
			"in one": func(in io.Reader) io.Reader { return in }, "by bytes": iotest.OneByteReader, "by halves": iotest.HalfReader, "with its end": iotest.DataErrReader,
		} {
			for _, together := range []int{1, 2, 7, len(want)} {
				for _, fed := range []bool{false, true} {
					stream := in(strings.NewReader(strings.Join(row.replies, "")))
					r := NewReader(stream, 16, 1<<20)
					if row.longest > 0 {
						r.DropLonger(row.longest)
					}
					if got, err := allOf(r, stream, fed, together, len(want)); err != nil || !slices.Equal(got, want) || row.longest > 0 && cap(r.buf) > 64*longest {
						t.Errorf("%s, fed: %v, %d at a time, in %d bytes: %.200q %v", name, fed, together, cap(r.buf), got, err)
					}
					if fed {
						continue
					}
					if err := r.Fill(); r.Pending() || err != io.EOF {
						t.Errorf("%s: behind the last: %v %v", name, r.Pending(), err)
					}
				}
			}
		}
	}
}

func TestReaderHoldsRepliesUntilTheyAreDiscarded(t *testing.T) {
	r := NewReader(iotest.OneByteReader(strings.NewReader("+a\r\n$3\r\nlng\r\n:7\r\n")), 4, 64)
	if err := r.Fetch(1); err != nil {
		t.Fatal(err)
	}
	if err := r.Fetch(1); err != nil {
		t.Fatal(err)
	}
	if got := r.Fetched(nil); len(got) != 2 || string(got[0]) != "+a\r\n" || string(got[1]) != "$3\r\nlng\r\n" {
		t.Fatalf("%q", got)
	}
	r.Discard()
	if got, err := r.Next(nil, 1); err != nil || len(got) != 1 || string(got[0]) != ":7\r\n" {
		t.Fatalf("%q %v", got, err)
	}
}

func TestReaderBoundsWhatItHolds(t *testing.T) {
	for name, row := range map[string]struct {
		stream string
		want   error
	}{
		"one reply that announces too much": {"$1000\r\n", errTooLong},
		"one that is too long":              {"+" + strings.Repeat("x", 200), errTooLong},
		"many together":                     {strings.Repeat("+OK\r\n", 100), errTooLong},
		"what is no reply":                  {"HTTP/1.1 400 Bad Request\r\n", errType},
		"one that ends in the middle":       {"$5\r\nab", io.EOF},
	} {
		for _, fed := range []bool{false, true} {
			stream := strings.NewReader(row.stream)
			r := NewReader(stream, 16, 64)
			_, err := allOf(r, iotest.OneByteReader(stream), fed, 50, 50)
			if fed && row.want == io.EOF {
				err = io.EOF // its owner sees that
			}
			if held := cap(r.buf); !errors.Is(err, row.want) || held > 2*64 {
				t.Errorf("%s, fed: %v: %v, want %v; %d bytes are held", name, fed, err, row.want, held)
			}
		}
	}
	r := NewReader(strings.NewReader("$100\r\n"+strings.Repeat("x", 100)+"\r\n"), 16, 64)
	r.SetLimit(128)
	if _, err := r.Next(nil, 1); err != nil {
		t.Errorf("after the limit was raised: %v", err)
	}
}

func TestReaderGivesMemoryBack(t *testing.T) {
	long := "$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n"
	r := NewReader(strings.NewReader(long+"+OK\r\n"), 16, 2<<20)
	if _, err := r.Next(nil, 1); err != nil {
		t.Fatal(err)
	}
	r.Discard()
	if got, err := r.Next(nil, 1); err != nil || string(got[0]) != "+OK\r\n" {
		t.Fatalf("%q %v", got, err)
	}
	r.Discard()
	if err := r.Fill(); r.Pending() || err != io.EOF {
		t.Fatal(r.Pending(), err)
	}
	if held := cap(r.buf); held > maxIdleBuffer {
		t.Errorf("%d bytes are kept of a buffer that holds nothing", held)
	}
}

// Whatever comes, in whatever pieces: a Reader that drops long replies gives all others as one that
// drops none, and ends with the same error.
func FuzzReaderDropsLongReplies(f *testing.F) {
	whole, _ := values(f)
	for _, v := range whole {
		f.Add([]byte(v.raw+":1\r\n"+v.raw), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, longest uint8) {
		read := func(drops bool) (replies []string, err error) {
			r := NewReader(nil, 16, 1<<20)
			if drops {
				r.DropLonger(1 << 14) // the same limit for all, 1 MB
				r.longest = int(longest)
			}
			return allOf(r, iotest.OneByteReader(bytes.NewReader(stream)), true, 1, 0)
		}
		want, whyWant := read(false)
		for i, reply := range want {
			if longest > 0 && len(reply) > int(longest) {
				want[i] = string(tooLong)
			}
		}
		if got, why := read(true); !slices.Equal(got, want) || why != whyWant {
			t.Errorf("%q %v, want %q %v", got, why, want, whyWant)
		}
	})
}
