package proxy

import (
	"testing"
	"time"
)

func TestBlockingTimeout(t *testing.T) {
	for _, row := range []struct {
		command string
		timeout time.Duration
		blocks  bool
	}{
		{"BLPOP k l 1", time.Second, true},
		{"brpop k 0", forEver, true},
		{"BLMOVE a b LEFT RIGHT 0.0001", time.Millisecond, true}, // rounded up
		{"BRPOPLPUSH a b 1.5e1", 15 * time.Second, true},
		{"BZPOPMAX z 0x10", 16 * time.Second, true},
		{"BZMPOP .5 1 z MIN", 500 * time.Millisecond, true},
		{"BLMPOP 2 1 9 LEFT", 2 * time.Second, true},
		{"BLPOP k 1e300", forEver, true},
		{"BLPOP k 9223372036854775", forEver, true},
		{"BLPOP k nan", 0, false},
		{"BLPOP k -1", 0, false},
		{"BLPOP k 1_0", 0, false},
		{"BLPOP k soon", 0, false},
		{"XREAD BLOCK 20 STREAMS s $", 20 * time.Millisecond, true},
		{"XREAD COUNT 5 block 0 STREAMS s $", forEver, true},
		{"XREAD BLOCK 1.5 STREAMS s $", 0, false},
		{"XREAD COUNT 5 STREAMS BLOCK 20", 0, false},
		{"XREADGROUP GROUP BLOCK 7 COUNT 1 NOACK BLOCK 30 STREAMS s >", 30 * time.Millisecond, true},
		{"XREADGROUP GROUP g BLOCK STREAMS s >", 0, false},
	} {
		timeout, blocks := blockingTimeout(fakeLockerCall(row.command).args)
		if timeout != row.timeout || blocks != row.blocks {
			t.Errorf("%s: %v, %v; want %v, %v", row.command, timeout, blocks, row.timeout, row.blocks)
		}
	}
}
