// Package chosen stands in the place of conditions of the product in a build whose only
// purpose is to find rules that no test misses. One build contains all mutants. The
// environment chooses one of them, so that nothing is compiled again for the next.
//
// Program mutants writes the calls of this package. Nothing else calls it.
package chosen

import (
	"cmp"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

// Variable names the environment variable with the number of the mutant. Without it the
// program behaves as it was written.
const Variable = "REDLOCK_MUTANT"

// ReachedVariable names the environment variable with the path of a file. The numbers of
// all mutants that the process could have been are appended to the file, a line each: a
// test can miss only a rule that it reaches.
const ReachedVariable = "REDLOCK_MUTANT_REACHED"

// Most is an upper bound of all numbers.
const Most = 1 << 15

var (
	number  = numberOf(os.Getenv(Variable))
	reached *reachedFile
)

func init() {
	if path := os.Getenv(ReachedVariable); path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		reached = &reachedFile{to: file}
	}
}

func numberOf(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// Is tells whether the process is mutant n.
func Is(n int) bool {
	if reached != nil {
		reached.note(n)
	}
	return n == number
}

// Less is a < b, and a <= b in mutant n.
func Less[T cmp.Ordered](n int, a, b T) bool { return a < b || Is(n) && a == b }

// LessEqual is a <= b, and a < b in mutant n.
func LessEqual[T cmp.Ordered](n int, a, b T) bool { return a < b || !Is(n) && a == b }

// Greater is a > b, and a >= b in mutant n.
func Greater[T cmp.Ordered](n int, a, b T) bool { return a > b || Is(n) && a == b }

// GreaterEqual is a >= b, and a > b in mutant n.
func GreaterEqual[T cmp.Ordered](n int, a, b T) bool { return a > b || !Is(n) && a == b }

// Term is a term of a sum or another value, and zero in mutant n.
func Term[T any](n int, term T) (t T) {
	if Is(n) {
		return t
	}
	return term
}

// Min is the smallest value. Mutant n+i knows nothing of value i.
func Min[T cmp.Ordered](n int, values ...T) T {
	return most(n, values, func(a, b T) T { return min(a, b) })
}

// Max is the largest value. Mutant n+i knows nothing of value i.
func Max[T cmp.Ordered](n int, values ...T) T {
	return most(n, values, func(a, b T) T { return max(a, b) })
}

func most[T cmp.Ordered](n int, values []T, better func(a, b T) T) T {
	var best T
	first := true
	for i, v := range values {
		switch {
		case Is(n + i):
		case first:
			best, first = v, false
		default:
			best = better(best, v)
		}
	}
	return best
}

type reachedFile struct {
	seen [Most]atomic.Bool
	mu   sync.Mutex
	to   *os.File
}

func (r *reachedFile) note(n int) {
	if r.seen[n].Swap(true) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.to.WriteString(strconv.Itoa(n) + "\n"); err != nil {
		panic(err)
	}
}
