//go:build race

package proxy

// poolsForget says that pools drop what they hold at random, so that more is allocated.
const poolsForget = true
