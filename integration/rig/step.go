package rig

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ClockStep is by how much a proxy's wall clock steps.
const ClockStep = time.Hour

// BuildStepping builds a proxy whose wall clock steps: forward at SIGUSR1, back at SIGUSR2. libfaketime has no
// way into a Go program, which asks the kernel itself. So the binary has a changed package time. The monotonic
// clock goes on as always, as it does when somebody sets the clock of a machine.
func BuildStepping(t testing.TB, out string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	clock := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	BuildChanged(t, out,
		Change{clock, `import (`, "import (\n\t\"sync/atomic\""},
		Change{
			clock, "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
			"var stepped atomic.Int64\n\nfunc StepClock(seconds int64) { stepped.Add(seconds) }\n\nfunc Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += stepped.Load()\n",
		},
		Change{"main.go", `import (`, "import (\n\t\"time\""},
		Change{"main.go", "func main() {", `func main() {
	steps := make(chan os.Signal, 16)
	signal.Notify(steps, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range steps {
			by := int64(3600)
			if s == syscall.SIGUSR2 {
				by = -by
			}
			time.StepClock(by)
		}
	}()
	`},
	)
}

// StepClock steps the wall clock of a proxy from BuildStepping, forward or back.
func (p *Proxy) StepClock(forward bool) {
	step := syscall.SIGUSR2
	if forward {
		step = syscall.SIGUSR1
	}
	p.Proc.Signal(step)
}
