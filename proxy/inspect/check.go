package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
)

// Check writes what is configured, what each server is, and every hazard, and
// tells whether the proxy would serve locks safely: warnings alone are fine, a
// server that is away or may not vote is not. It changes nothing on a server.
// Settings that have their defaults are left out unless all are asked for.
func Check(ctx context.Context, cfg *config.Config, all bool, w io.Writer) bool {
	upstream, masters := Servers(ctx, cfg)
	if all {
		fmt.Fprintf(w, "configuration from %s\n\n", cfg.Source)
		writeSettings(w, cfg)
	} else {
		fmt.Fprintf(w, "configuration from %s; what is not shown has its default (-all shows it)\n\n", cfg.Source)
		writeTable(w, changedSettings(cfg))
	}
	if upstream != nil || len(masters) > 0 {
		fmt.Fprintln(w)
		writeServers(w, upstream, masters)
		writeSentinels(w, upstream, masters)
	}
	markers, found := markerLines(cfg, masters)
	hazards := slices.Concat(Hazards(cfg, upstream, masters), openHazards(cfg), found)
	if len(markers) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(markers, "\n"))
	}
	fmt.Fprintln(w)
	if len(hazards) == 0 {
		fmt.Fprintln(w, "no hazards found")
	}
	fine := true
	for _, hazard := range hazards {
		word := "warning"
		if hazard.level != hazardWarning {
			word, fine = "error", false
		}
		fmt.Fprintf(w, "%-8s %s\n", word+":", hazard.text)
	}
	return fine
}

// writeSentinels is one line for each server that Sentinels manage.
func writeSentinels(w io.Writer, upstream *Facts, masters []Facts) {
	gap := "\n"
	for _, f := range allServers(upstream, masters) {
		if line := f.sentinelLine(); line != "" {
			fmt.Fprint(w, gap, line, "\n")
			gap = ""
		}
	}
}

func allServers(upstream *Facts, masters []Facts) []Facts {
	if upstream == nil {
		return masters
	}
	return append([]Facts{*upstream}, masters...)
}

// writeServers is one row a server.
func writeServers(w io.Writer, upstream *Facts, masters []Facts) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "SERVER\tADDRESS\tSTATE\tVERSION\tROLE\tDATABASES\tMAXMEMORY-POLICY\tPERSISTENCE\tRUN_ID")
	for _, f := range allServers(upstream, masters) {
		name := f.Name
		if f.encrypted {
			name += endpoint.TLSMark
		}
		state := "answers"
		if f.Err != nil {
			state = "unusable"
		}
		version := f.Version
		if version != "" {
			version = f.product + " " + version
		}
		role := f.role
		if f.cluster {
			role += ", cluster"
		}
		databases := ""
		if f.databases > 0 {
			databases = strconv.Itoa(f.databases)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.title, name, state,
			orDash(version), orDash(role), orDash(databases), orDash(f.policy), orDash(f.persistence), orDash(shortRunID(f.runID)))
	}
}
