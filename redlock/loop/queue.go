package loop

// A queue is what goroutines want from the loop.
type queue struct {
	funcs   []func()
	tasks   []*Task
	later   []*Task // those of GoLater
	ends    []func()
	sockets []*Socket
}

// A batch is what the loop took from a queue and has not handled yet.
type batch[T any] struct {
	items []T
	next  int
}

// refill takes what was queued if everything before was handled.
func (b *batch[T]) refill(queued *[]T) {
	if b.next == len(b.items) {
		b.items, *queued = *queued, b.items[:0]
		b.next = 0
	}
}

func (b *batch[T]) pop() (item T, ok bool) {
	if b.next == len(b.items) {
		return item, false
	}
	item, b.items[b.next] = b.items[b.next], item
	b.next++
	return item, true
}

func (b *batch[T]) isEmpty() bool { return b.next == len(b.items) }

// A line is sockets that wait to be read.
type line struct {
	queued []*Socket
	batch  batch[*Socket]
}

func (w *line) add(s *Socket) { w.queued = append(w.queued, s) }
func (w *line) isEmpty() bool { return len(w.queued) == 0 && w.batch.isEmpty() }

func (q *queue) isEmpty() bool {
	return len(q.funcs)+len(q.tasks)+len(q.later)+len(q.ends)+len(q.sockets) == 0
}

func (q *queue) add(t *Task) {
	if t.later {
		q.later = append(q.later, t)
	} else {
		q.tasks = append(q.tasks, t)
	}
}
