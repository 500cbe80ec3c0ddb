//go:build !race

package loop

import (
	"net"
	"os"
	"os/exec"
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

// usualStacks has each goroutine begin with 2 KiB. Otherwise the size depends on the stacks of the
// goroutines before, so on the tests that have run.
const usualStacks = "GODEBUG=adaptivestackstart=0"

// An idle socket with its parked task takes little memory: 2 KiB are the stack of the coroutine. That
// of a pump takes the stack and the buffer of its reader, too. The race detector makes stacks larger.
func TestMemoryOfAnIdleSocket(t *testing.T) {
	t.Run("plain", func(t *testing.T) { memoryOfAnIdleSocket(t, "unix", 4<<10) })
	t.Run("pumped", func(t *testing.T) { memoryOfAnIdleSocket(t, "pumped", 8<<10) })
}

func memoryOfAnIdleSocket(t *testing.T, network string, most int) {
	const count = 500
	if "GODEBUG="+os.Getenv("GODEBUG") != usualStacks {
		fresh := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		fresh.Env = append(os.Environ(), usualStacks)
		output, err := fresh.CombinedOutput()
		t.Logf("a process of its own: %s", output)
		if err != nil {
			t.Error(err)
		}
		return
	}
	l := start(t)
	clients := make([]net.Conn, count)
	ours := make([]net.Conn, count)
	for i := range count {
		ours[i], clients[i] = pair(t, network)
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
