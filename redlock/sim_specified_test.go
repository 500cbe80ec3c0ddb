package redlock

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/layer"
)

// checkTraces returns how far TLC gets in each trace: in steps, which are lines.
func checkTraces(t *testing.T, traces []string) []int {
	t.Helper()
	layer.Program(t, "java", "default-jre-headless")
	layer.Program(t, "mvn", "maven")
	var tokens, masters []string
	for i := 1; strings.Contains(strings.Join(traces, ""), fmt.Sprintf(`"v%d"`, i)); i++ {
		tokens = append(tokens, fmt.Sprintf(`"v%d"`, i))
	}
	for i := range traceMasters {
		masters = append(masters, strconv.Quote(traceMaster(i)))
	}
	file := filepath.Join(t.TempDir(), "TraceData.tla")
	text := fmt.Sprintf("---- MODULE TraceData ----\nTraceProcs == {%s}\nTraceMasters == {%s}\nTraces == <<\n%s>>\n====\n",
		strings.Join(tokens, ", "), strings.Join(masters, ", "), strings.Join(traces, ",\n\n"))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("spec/check.sh", "-traces", file, fmt.Sprintf("TTLs={%d}", traceTTL.Milliseconds()+1), "Delay=2000", "MaxQ=600000", "AtOnce=3", "OnlyMarkersTell=FALSE")
	out, err := cmd.CombinedOutput()
	step := regexp.MustCompile(`(?m)^<<(\d+), (\d+)>>\n`)
	if err != nil || !bytes.Contains(out, []byte("No error has been found")) {
		t.Fatalf("%v\n%s", err, step.ReplaceAll(out, nil))
	}
	reached := make([]int, len(traces))
	for _, m := range step.FindAllSubmatch(out, -1) {
		trace, _ := strconv.Atoi(string(m[1]))
		step, _ := strconv.Atoi(string(m[2]))
		reached[trace-1] = max(reached[trace-1], step)
	}
	return reached
}

// alterations are what no run may do. Each changes one step of a trace, after its first third, and returns false if there is
// none that it can change.
var alterations = map[string]func(lines []string) bool{
	"a lock is granted that another one holds": func(lines []string) bool {
		return alter(lines, `"is refused"`, `"is granted"`)
	},
	"a ballot is won that was lost": func(lines []string) bool {
		return alter(lines, `"gives up"`, `"wins"`)
	},
	"a won ballot lacks a vote": func(lines []string) bool {
		return alter(lines, `"is granted"`, `"is rejected"`)
	},
	"a release finds another lock": func(lines []string) bool {
		return alter(lines, `"deletes"`, `"finds nothing"`)
	},
	"a quarantine is too short": func(lines []string) bool {
		return alter(lines, `{}, 2000>>`, `{}, 1999>>`)
	},
	"a flush is not noticed": func(lines []string) bool {
		return alter(lines, `"is flushed"`, `"is marked"`)
	},
}

func alter(lines []string, from, to string) bool {
	for i := len(lines) / 3; i < len(lines); i++ {
		if strings.Contains(lines[i], from) {
			lines[i] = strings.Replace(lines[i], from, to, 1)
			return true
		}
	}
	return false
}

// What masters execute and clients hear is a history of the specification. With one step altered it is none.
func TestSimulationIsSpecified(t *testing.T) {
	layer.Only(t, layer.Servers, "traces that the specification checks")
	tried := map[string]bool{}
	for seeds := range slices.Chunk(simSeeds(t, 100), 4) {
		var traces, names []string
		for _, seed := range seeds {
			x := &simTrace{}
			if _, wrong := simulate(t, seed, simOptions{trace: x}); len(wrong)+len(x.wrong) > 0 {
				t.Errorf("seed %d: %q %q", seed, wrong, x.wrong)
				continue
			}
			text := x.text()
			if x.beyond != "" {
				t.Logf("seed %d: %s", seed, x.beyond)
				continue
			}
			traces, names = append(traces, text), append(names, "")
			for name, change := range alterations {
				if lines := strings.Split(text, "\n"); !tried[name] && change(lines) {
					traces, names = append(traces, strings.Join(lines, "\n")), append(names, name)
					tried[name] = true
				}
			}
		}
		if len(traces) == 0 {
			t.Errorf("the specification has no run of the seeds %v", seeds)
			continue
		}
		for i, reached := range checkTraces(t, traces) {
			lines := strings.Split(traces[i], "\n")
			switch accepted := reached == len(lines); {
			case accepted && names[i] != "":
				t.Errorf("accepted, although %s", names[i])
			case !accepted && names[i] == "":
				t.Errorf("the specification refuses step %d of trace %d of the seeds %v:\n%s", reached+1, i+1, seeds, strings.Join(lines[max(0, reached-60):reached+1], "\n"))
			case !accepted && reached < len(lines)/3:
				t.Errorf("refused at once, although only a later step was altered: %s", names[i])
			}
		}
	}
	if len(tried) < len(alterations) && *simSeed == "" {
		t.Errorf("only these steps were altered: %v", tried)
	}
}
