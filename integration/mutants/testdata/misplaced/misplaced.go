// Package misplaced names a rule where nothing can be left out.
package misplaced

func Least(n int) int {
	// rule: the least is one
	if n < 1 {
		return 1
	}
	return n
}
