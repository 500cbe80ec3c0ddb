package datatest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Script is a story in lines of text. A line that begins at the margin is an event. The
// indented lines below an event are what came of it:
//
//	# A lock is granted by a quorum. The second client is refused.
//	masters ok ok ok refuse refuse
//	a acquires for 10s
//	    won after 1ms
//	b acquires for 10s
//	    lost after 1ms
//
// A line that begins with # tells why. A line "== NAME" begins another script of the same
// file, and what stands before the first such line begins each script of the file.
type Script struct {
	t        *testing.T
	text     string
	out      strings.Builder
	recorded []string // what came of the present event when it was recorded
}

// Rewriting tells whether the flag -rewrite is set. Then the scripts record what comes out.
func Rewriting() bool { return *rewrite }

// Play runs each script in the files that match pattern as a subtest. play tells the
// events to what is tested (Events), and prints what comes of each (Printf). What it
// printed must be what the file records. With -rewrite it is written into the file, to be
// reviewed as a diff. play may call t.Parallel.
func Play(t *testing.T, pattern string, play func(t *testing.T, s *Script)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", pattern, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		opening, scripts := splitScripts(string(text))
		if len(scripts) == 0 {
			opening, scripts = "", []string{opening}
		}
		recorded := slices.Clone(scripts)
		for i, script := range scripts {
			title, isNamed := strings.CutPrefix(script, "== ")
			title, _, _ = strings.Cut(title, "\n")
			if !isNamed {
				title = ""
			}
			t.Run(strings.TrimSuffix(name+"/"+title, "/"), func(t *testing.T) {
				recorded[i] = playOne(t, opening, script, play)
			})
		}
		t.Cleanup(func() { // when the scripts that run in parallel have ended, too
			if got := opening + strings.Join(recorded, ""); *rewrite && got != string(text) {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// splitScripts returns what all scripts of a file begin with, and the scripts.
func splitScripts(text string) (opening string, scripts []string) {
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "== "):
			scripts = append(scripts, line)
		case len(scripts) == 0:
			opening += line
		default:
			scripts[len(scripts)-1] += line
		}
	}
	return opening, scripts
}

// playOne returns the script as it comes out now.
func playOne(t *testing.T, opening, script string, play func(*testing.T, *Script)) string {
	t.Helper()
	s := &Script{t: t, text: opening + script}
	play(t, s)
	if !strings.HasPrefix(s.out.String(), opening) {
		t.Fatalf("the lines that begin each script of a file must print nothing:\n%s", s.out.String())
	}
	got := strings.TrimPrefix(s.out.String(), opening)
	if got != script && !*rewrite {
		t.Errorf("it comes out otherwise (go test -rewrite records that):\n%s", changes(script, got))
	}
	return got
}

// Events yields each event of the script. The line in the output precedes what Printf prints.
func (s *Script) Events(yield func(event string) bool) {
	lines := strings.SplitAfter(s.text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "    ") {
			continue // what came of an event when it was recorded
		}
		s.recorded = nil
		for _, below := range lines[i+1:] {
			came, isIndented := strings.CutPrefix(below, "    ")
			if !isIndented {
				break
			}
			s.recorded = append(s.recorded, strings.TrimSuffix(came, "\n"))
		}
		s.out.WriteString(line)
		event := strings.TrimRight(line, "\n")
		if event == "" || strings.HasPrefix(event, "#") || strings.HasPrefix(event, "== ") {
			continue
		}
		if !yield(event) {
			s.t.Fatalf("the script ends early, at: %s", event)
		}
	}
}

// Recorded returns the lines that the file has below the present event.
func (s *Script) Recorded() []string { return s.recorded }

// Printf prints what came of the present event, one line or several.
func (s *Script) Printf(format string, values ...any) {
	for line := range strings.SplitSeq(strings.TrimRight(fmt.Sprintf(format, values...), "\n"), "\n") {
		s.out.WriteString("    " + line + "\n")
	}
}

// Duration reads a time of a script, such as 1.5s. One that cannot be read is a mistake in the script.
func Duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		panic(err)
	}
	return d
}

// changes shows two texts as one. Lines of the first alone begin with -, those of the second alone with +.
func changes(want, got string) string {
	a, b := slices.Collect(strings.Lines(want)), slices.Collect(strings.Lines(got))
	// same[i][j] is the length of the longest common list of lines of a[i:] and b[j:].
	same := make([][]int, len(a)+1)
	for i := range same {
		same[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same[i][j] = max(same[i+1][j], same[i][j+1]); a[i] == b[j] {
				same[i][j] = same[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out.WriteString("  " + a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && same[i+1][j] >= same[i][j+1]:
			out.WriteString("- " + a[i])
			i++
		default:
			out.WriteString("+ " + b[j])
			j++
		}
	}
	return out.String()
}
