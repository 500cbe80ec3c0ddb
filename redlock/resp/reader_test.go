package resp

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReaderGivesWholeReplies(t *testing.T) {
	var stream strings.Builder
	var want []string
	for _, v := range replyValues {
		stream.WriteString(v.raw)
		want = append(want, v.raw)
	}
	for name, in := range map[string]func() io.Reader{
		"in one":       func() io.Reader { return strings.NewReader(stream.String()) },
		"by bytes":     func() io.Reader { return iotest.OneByteReader(strings.NewReader(stream.String())) },
		"by halves":    func() io.Reader { return iotest.HalfReader(strings.NewReader(stream.String())) },
		"with its end": func() io.Reader { return iotest.DataErrReader(strings.NewReader(stream.String())) },
	} {
		for _, together := range []int{1, 2, 7} {
			if got, err := feed(in(), together); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, fed, %d at a time: %.200q %v", name, together, got, err)
			}
			r := NewReader(in(), 16, 1<<20)
			var got []string
			for len(got) < len(want) {
				replies, err := r.Next(nil, min(together, len(want)-len(got)))
				if err != nil {
					t.Fatalf("%s, %d at a time: after %d replies: %v", name, together, len(got), err)
				}
				for _, reply := range replies {
					got = append(got, string(reply))
				}
				r.Discard()
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d at a time: %.200q", name, together, got)
			}
			if err := r.Fill(); r.Pending() || err != io.EOF {
				t.Errorf("%s: behind the last: %v %v", name, r.Pending(), err)
			}
		}
	}
}

// feed returns the replies of a Reader whose owner reads in. Up to together of them are
// held at a time.
func feed(in io.Reader, together int) (got []string, err error) {
	r := NewReader(nil, 16, 1<<20)
	p := make([]byte, 4<<10)
	for {
		n, err := in.Read(p)
		if n == 0 && err == io.EOF {
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
				got = appendHeld(got, r)
			}
		}
	}
	return appendHeld(got, r), nil
}

func appendHeld(got []string, r *Reader) []string {
	for _, reply := range r.Fetched(nil) {
		got = append(got, string(reply))
	}
	r.Discard()
	return got
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
		r := NewReader(strings.NewReader(row.stream), 16, 64)
		if _, err := r.Next(nil, 50); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
		if held := cap(r.buf); held > 2*64 {
			t.Errorf("%s: %d bytes are held", name, held)
		}
		if row.want == io.EOF {
			continue
		}
		r = NewReader(nil, 16, 64)
		if err := feedBytes(r, row.stream, 50); !errors.Is(err, row.want) {
			t.Errorf("%s, fed: %v, want %v", name, err, row.want)
		}
		if held := cap(r.buf); held > 2*64 {
			t.Errorf("%s, fed: %d bytes are held", name, held)
		}
	}
	r := NewReader(strings.NewReader("$100\r\n"+strings.Repeat("x", 100)+"\r\n"), 16, 64)
	r.SetLimit(128)
	if _, err := r.Next(nil, 1); err != nil {
		t.Errorf("after the limit was raised: %v", err)
	}
}

// feedBytes feeds a text byte by byte, until r holds n replies.
func feedBytes(r *Reader, text string, n int) error {
	for i := range len(text) {
		if err := r.Feed([]byte(text[i : i+1])); err != nil {
			return err
		}
		if _, err := r.Hold(n); err != nil {
			return err
		}
	}
	return nil
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

// What is longer than the limit is dropped, wherever the input is cut. All other replies are whole.
func TestReaderDropsLongReplies(t *testing.T) {
	const longest = 64
	bulk := func(n int) string { return string(AppendBulk(nil, strings.Repeat("x", n))) }
	var stream strings.Builder
	var want []string
	for _, reply := range []string{
		":1\r\n", bulk(longest - 7), bulk(longest - 6), bulk(1), bulk(50 * longest), "*2\r\n" + bulk(50) + bulk(50),
		bulk(50 * longest), "+OK\r\n", "-" + strings.Repeat("e", longest) + "\r\n", "$-1\r\n",
	} {
		stream.WriteString(reply)
		if len(reply) > longest {
			reply = string(tooLong)
		}
		want = append(want, reply)
	}
	for name, in := range map[string]io.Reader{
		"in one":    strings.NewReader(stream.String()),
		"by bytes":  iotest.OneByteReader(strings.NewReader(stream.String())),
		"by halves": iotest.HalfReader(strings.NewReader(stream.String())),
	} {
		for _, together := range []int{1, len(want)} {
			if seeker, ok := in.(io.Seeker); ok {
				_, _ = seeker.Seek(0, io.SeekStart)
			} else if together > 1 {
				continue
			}
			r := NewReader(in, 16, 8)
			r.DropLonger(longest)
			var got []string
			for len(got) < len(want) {
				replies, err := r.Next(nil, together)
				if err != nil {
					t.Fatalf("%s, %d at a time: after %q: %v", name, together, got, err)
				}
				for _, reply := range replies {
					got = append(got, string(reply))
				}
				r.Discard()
			}
			if !slices.Equal(got, want) || cap(r.buf) > 64*longest {
				t.Errorf("%s, %d at a time, in %d bytes: %q", name, together, cap(r.buf), got)
			}
		}
	}
}

// Whatever comes, in whatever pieces: a Reader that drops long replies gives all others as one that
// drops none, and ends with the same error.
func FuzzReaderDropsLongReplies(f *testing.F) {
	for _, v := range replyValues {
		f.Add([]byte(v.raw+":1\r\n"+v.raw), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, longest uint8) {
		read := func(drops bool) (replies []string, err error) {
			r := NewReader(nil, 16, 1<<20)
			if drops {
				r.DropLonger(1 << 14) // the same limit for all, 1 MB
				r.longest = int(longest)
			}
			for i := range stream {
				if err := r.Feed(stream[i : i+1]); err != nil {
					return replies, err
				}
				if whole, err := r.Hold(1); err != nil {
					return replies, err
				} else if whole {
					replies = appendHeld(replies, r)
				}
			}
			return replies, nil
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
