//go:build !race

package loop

const raceFactor = 1
