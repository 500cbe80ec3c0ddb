package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/redlock"
)

// A Report is the result of -check. Its JSON is an interface for scripts: fields may be
// added, but none may be renamed or removed.
type Report struct {
	// Fine tells whether the proxy would serve locks safely. It stays true with warnings
	// alone. It is false if a server is unreachable or may not vote.
	Fine          bool         `json:"fine"`
	Configuration string       `json:"configuration"` // the file
	Settings      settingList  `json:"settings"`      // those without a default, or with another value
	Servers       []ServerLine `json:"servers"`       // the upstream first
	Notes         []string     `json:"notes"`         // on Sentinels, then on markers and users
	Hazards       []HazardLine `json:"hazards"`

	all       bool // Settings has all settings
	sentinels int  // the number of notes on Sentinels, which come first
}

// A ServerLine is one server. A field is empty or 0 if the server did not report it.
type ServerLine struct {
	Server      string `json:"server"` // upstream, master 1
	Address     string `json:"address"`
	TLS         bool   `json:"tls"`
	State       string `json:"state"` // for the upstream: reachable or unreachable
	Product     string `json:"product"`
	Version     string `json:"version"`
	Role        string `json:"role"`
	Cluster     bool   `json:"cluster"`
	Databases   int    `json:"databases"`
	Policy      string `json:"maxmemory_policy"`
	Persistence string `json:"persistence"`
	RunID       string `json:"run_id"`
}

// A HazardLine is a Hazard in words. Kind, Server and Detail are the labels of
// the metric redlock_hazards.
type HazardLine struct {
	Level  string `json:"level"` // warning or error
	Kind   string `json:"kind"`
	Server string `json:"server"` // its address
	Detail string `json:"detail"`
	Text   string `json:"text"`
}

// Check asks every server about itself and changes nothing there. It leaves out settings
// with their default values, unless all is true.
func Check(ctx context.Context, cfg *config.Config, all bool) Report {
	upstream, masters := Servers(ctx, cfg)
	markers, found := markerLines(cfg, masters)
	hazards := slices.Concat(Hazards(cfg, upstream, masters), openHazards(cfg), slowHazards(cfg), reusePortHazards(cfg, migrateSetting), found)
	r := Report{Fine: true, Configuration: cfg.Source, Settings: cfg.Show(all), Servers: serverLines(upstream, masters, hazards), all: all}
	r.Notes = sentinelLines(upstream, masters)
	r.sentinels = len(r.Notes)
	r.Notes = append(r.Notes, markers...)
	if cfg.Auth.Upstream || len(cfg.Auth.Users) > 0 {
		r.Notes = append(r.Notes, "users: each one who may use locks is trusted with all lock keys, because a script reaches every key of a master, as on one Redis")
	}
	r.Hazards = []HazardLine{}
	for _, h := range hazards {
		level := "warning"
		if h.level != hazardWarning {
			level, r.Fine = "error", false
		}
		r.Hazards = append(r.Hazards, HazardLine{level, h.kind, h.server, h.detail, h.text})
	}
	return r
}

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteText writes the report for people.
func (r Report) WriteText(w io.Writer) {
	if r.all {
		fmt.Fprintf(w, "configuration from %s\n\n", r.Configuration)
	} else {
		fmt.Fprintf(w, "configuration from %s; what is not shown has its default (-all shows it)\n\n", r.Configuration)
	}
	r.Settings.write(w)
	if len(r.Servers) > 0 {
		fmt.Fprintln(w)
		writeServers(w, r.Servers)
	}
	for _, notes := range [][]string{r.Notes[:r.sentinels], r.Notes[r.sentinels:]} {
		if len(notes) > 0 {
			fmt.Fprintf(w, "\n%s\n", strings.Join(notes, "\n"))
		}
	}
	fmt.Fprintln(w)
	if len(r.Hazards) == 0 {
		fmt.Fprintln(w, "no hazards found")
	}
	for _, hazard := range r.Hazards {
		fmt.Fprintf(w, "%-8s %s\n", hazard.Level+":", hazard.Text)
	}
}

// sentinelLines returns one line for each server that Sentinels manage.
func sentinelLines(upstream *Facts, masters []Facts) []string {
	lines := []string{}
	for _, f := range allServers(upstream, masters) {
		if line := f.sentinelLine(); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func allServers(upstream *Facts, masters []Facts) []Facts {
	if upstream == nil {
		return masters
	}
	return append([]Facts{*upstream}, masters...)
}

func serverLines(upstream *Facts, masters []Facts, hazards []Hazard) []ServerLine {
	states := masterStates(masters, hazards)
	if upstream != nil {
		state := "reachable"
		if upstream.Err != nil {
			state = redlock.Unreachable.String()
		}
		states = append([]string{state}, states...)
	}
	lines := []ServerLine{}
	for i, f := range allServers(upstream, masters) {
		lines = append(lines, ServerLine{
			Server: f.title, Address: f.Name, TLS: f.encrypted, State: states[i],
			Product: f.product, Version: f.Version, Role: f.role, Cluster: f.cluster, Databases: f.databases,
			Policy: f.policy, Persistence: f.persistence, RunID: f.runID,
		})
	}
	return lines
}

// masterStates returns the states that a process would give the masters if it started
// now.
func masterStates(masters []Facts, hazards []Hazard) []string {
	standings := statesOf(masters)
	states := make([]string, len(masters))
	for i, f := range masters {
		state := standings[i].State
		mustNot := func(h Hazard) bool { return h.server == f.Name && h.level != hazardWarning }
		if f.Err == nil && slices.ContainsFunc(hazards, mustNot) {
			state = redlock.Rejected
		}
		states[i] = state.String()
	}
	return states
}

// writeServers writes one row for each server.
func writeServers(w io.Writer, servers []ServerLine) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "SERVER\tADDRESS\tSTATE\tVERSION\tROLE\tDATABASES\tMAXMEMORY-POLICY\tPERSISTENCE\tRUN_ID")
	for _, s := range servers {
		address, version, role, databases := s.Address, s.Version, s.Role, ""
		if s.TLS {
			address += endpoint.TLSMark
		}
		if version != "" {
			version = s.Product + " " + version
		}
		if s.Cluster {
			role += ", cluster"
		}
		if s.Databases > 0 {
			databases = strconv.Itoa(s.Databases)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Server, address, s.State,
			orDash(version), orDash(role), orDash(databases), orDash(s.Policy), orDash(s.Persistence), orDash(shortRunID(s.RunID)))
	}
}
