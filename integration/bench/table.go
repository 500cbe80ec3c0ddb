package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A spread is one figure, measured in several rounds.
type spread []float64

func (s spread) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// over divides two spreads, round by round.
func (s spread) over(other spread) spread {
	quotients := make(spread, len(s))
	for i := range s {
		quotients[i] = s[i] / other[i]
	}
	return quotients
}

func (s spread) times(factor float64) spread {
	products := make(spread, len(s))
	for i := range s {
		products[i] = s[i] * factor
	}
	return products
}

// A row is one line of the table.
type row struct {
	section, what string
	measured      spread
	unit          string // "x": a ratio; otherwise a unit of size or time
	bar           bar
	figures       string // the medians that the ratio was made from, or why there is no ratio
}

// A bar is the limit for a median. The zero value is no limit: the row only reports.
type bar struct {
	most, least float64
	kind        int
}

const (
	barNone = iota
	barAtMost
	barAtLeast
)

func atMost(value float64) bar  { return bar{most: value, kind: barAtMost} }
func atLeast(value float64) bar { return bar{least: value, kind: barAtLeast} }

// cells returns a row as texts, in the order of heading.
func (r row) cells() []string {
	if len(r.measured) == 0 {
		return []string{r.section, r.what, "", "", "", "", r.figures}
	}
	median := r.measured.median()
	var wanted, met string
	switch {
	case r.bar.kind == barAtMost:
		wanted, met = "<= "+amount(r.bar.most, r.unit), yesNo(median <= r.bar.most)
	case r.bar.kind == barAtLeast:
		wanted, met = ">= "+amount(r.bar.least, r.unit), yesNo(median >= r.bar.least)
	}
	between := amount(slices.Min(r.measured), "") + ".." + amount(slices.Max(r.measured), "")
	return []string{r.section, r.what, amount(median, r.unit), between, wanted, met, r.figures}
}

var heading = []string{"section", "what", "median", "min..max", "bar", "met", "medians of the figures"}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "NO"
}

// amount writes a value with three significant digits.
func amount(value float64, unit string) string {
	text := fmt.Sprintf("%.0f", value)
	switch {
	case value == float64(int64(value)):
	case value < 10:
		text = fmt.Sprintf("%.2f", value)
	case value < 100:
		text = fmt.Sprintf("%.1f", value)
	}
	if unit == "" || unit == "x" {
		return text + unit
	}
	return text + " " + unit
}

// medians lists the medians that a ratio is made from.
func medians(unit string, of ...spread) string {
	var texts []string
	for _, each := range of {
		texts = append(texts, amount(each.median(), ""))
	}
	return strings.Join(texts, " / ") + " " + unit
}

func printText(out io.Writer, rows []row) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, cells := range table(rows) {
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // out is the terminal
}

func printMarkdown(out io.Writer, rows []row) {
	for i, cells := range table(rows) {
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintln(out, strings.Repeat("|---", len(heading))+"|")
		}
	}
}

func table(rows []row) [][]string {
	lines := [][]string{heading}
	for _, r := range rows {
		lines = append(lines, r.cells())
	}
	return lines
}

// report adds a ratio or a figure to the table.
func (b *bench) report(what string, measured spread, unit string, wanted bar, figures string) {
	b.rows = append(b.rows, row{b.section, what, measured, unit, wanted, figures})
}

// cannot adds a row that says why something was not measured.
func (b *bench) cannot(what, why string) {
	b.rows = append(b.rows, row{section: b.section, what: what, figures: why})
}
