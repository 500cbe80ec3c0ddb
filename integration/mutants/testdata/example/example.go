// Package example has one of each thing that the generator changes. Its test misses some
// of the rules, and not others.
package example

import "time"

const (
	Small = iota + 1
	Large
	Odd
)

type Box struct {
	open  bool
	count int
}

func (b *Box) Put(n int) bool {
	if n < 0 || n > 10 && !b.open {
		return false
	}
	b.count += n
	b.note()
	return b.count >= 3
}

func (b *Box) note() { b.open = true }

func Kind(size int) string {
	switch size {
	case Small:
		return "small"
	case Large, Odd:
		return "large"
	}
	switch {
	case size > 1000:
		return "huge"
	case size == 7, size == 8:
		return "odd"
	}
	return "none"
}

func Validity(ttl, elapsed time.Duration) time.Duration {
	return max(ttl-elapsed-2*time.Millisecond, 0)
}

// Next is called once for a switch, not once for each of its cases.
func (b *Box) Next() string {
	switch b.take() {
	case 1:
		return "one"
	case 2:
		return "two"
	}
	return "many"
}

func (b *Box) take() int {
	// A named rule may have more to say.
	// rule: each number is given once
	b.count++
	return b.count
}

func CountDown(n int) (steps int) {
	for n > 0 {
		n--
		steps++
	}
	return steps
}

// Either has a chain in which the whole, a part and a part of that begin at one place.
func Either(a, b, c bool) bool {
	return a && b || c
}

// A Mark has rules for its values.
type Mark struct {
	Name string
	At   int
}

func NewMark(name string, at int) Mark {
	// rule: a mark has a place
	place := at
	name = trimmed(
		// rule: a mark's name is its own
		name)
	return Mark{
		// rule: a mark has a name
		Name: name,
		At:   place,
	}
}

func trimmed(name string) string {
	// rule: a name is as it was given
	return name
}
