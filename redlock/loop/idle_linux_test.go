package loop

import (
	"net"
	"runtime"
	"testing"
)

// memory is what is in use after a collection.
func memory() (heap, stacks int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc), int(m.StackInuse)
}

// An idle socket with its parked task takes little memory: 2 KiB are the stack of the coroutine.
func TestMemoryOfAnIdleSocket(t *testing.T) {
	const count, most = 500, raceFactor * 4 << 10
	l := start(t)
	clients := make([]net.Conn, count)
	ours := make([]net.Conn, count)
	for i := range count {
		ours[i], clients[i] = pair(t, "unix")
	}
	heap, stacks := memory()
	echoes := make([]*echo, count)
	for i, c := range ours {
		echoes[i] = adoptEcho(t, l, c)
		ours[i] = nil
	}
	for _, c := range clients {
		if _, err := c.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		readFull(t, c, 4)
	}
	l.flush(t)
	heapAfter, stacksAfter := memory()
	perHeap, perStack := (heapAfter-heap)/count, (stacksAfter-stacks)/count
	t.Logf("%d bytes of heap and %d of stack each", perHeap, perStack)
	if perHeap+perStack > most {
		t.Errorf("an idle socket takes more than %d bytes", most)
	}
	runtime.KeepAlive(echoes)
}
