//go:build race

package loop

// raceFactor: under the race detector frames of functions are larger, and so are stacks.
const raceFactor = 4
