package inspect

import (
	"cmp"
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
	Fine          bool        `json:"fine"`
	Configuration string      `json:"configuration"` // the file
	Settings      settingList `json:"settings"`      // those without a default, or with another value
	Servers       []Facts     `json:"servers"`       // the upstream first
	Notes         []string    `json:"notes"`         // on Sentinels, then on markers and users
	Hazards       []Hazard    `json:"hazards"`

	all bool // Settings has all settings
}

// Check asks every server about itself and changes nothing there. It leaves out settings
// with their default values, unless all is true.
func Check(ctx context.Context, cfg *config.Config, all bool) Report {
	a := Ask(ctx, cfg)
	markers, found := a.markerLines()
	hazards := hazardList(a.Hazards())
	hazards.settings(cfg, migrateSetting)
	r := Report{Configuration: cfg.Source, Settings: cfg.Show(all), Notes: []string{}, Hazards: append(hazardList{}, append(hazards, found...)...), all: all}
	r.Servers = a.servers(r.Hazards)
	for _, f := range r.Servers {
		if s := f.sentinels; s.Asked > 0 {
			text := fmt.Sprintf("%s is managed by %s, of which %d answer", f.called(), config.Plural(s.Asked, "Sentinel"), s.Answered)
			if s.Master != "" {
				text += fmt.Sprintf(": the master is %s (named by %d), with %s", s.Master, s.Named[s.Master], config.Plural(s.Replicas, "replica"))
			}
			r.Notes = append(r.Notes, text)
		}
	}
	r.Notes = append(r.Notes, markers...)
	if cfg.Auth.Upstream || len(cfg.Auth.Users) > 0 {
		r.Notes = append(r.Notes, "users: each one who may use locks is trusted with all lock keys, because a script reaches every key of a master, as on one Redis")
	}
	r.Fine = !slices.ContainsFunc(r.Hazards, func(h Hazard) bool { return h.Level != hazardWarning })
	return r
}

// servers are the rows of a Report. A master has the state that a process would give it if that started now.
func (a Answers) servers(hazards []Hazard) []Facts {
	states := statesOf(a.Masters)
	list := slices.Clone(a.all())
	for i := range list {
		f := &list[i]
		mustNot := func(h Hazard) bool { return h.Server == f.Name && h.Level != hazardWarning }
		switch {
		case f.Err != nil:
			f.State = redlock.Unreachable.String()
		case i < len(list)-len(states):
			f.State = "reachable"
		case slices.ContainsFunc(hazards, mustNot):
			f.State = redlock.Rejected.String()
		default:
			f.State = states[i-len(list)+len(states)].State.String()
		}
	}
	return append([]Facts{}, list...)
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
	if len(r.Notes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(r.Notes, "\n"))
	}
	fmt.Fprintln(w)
	if len(r.Hazards) == 0 {
		fmt.Fprintln(w, "no hazards found")
	}
	for _, hazard := range r.Hazards {
		fmt.Fprintf(w, "%-8s %s\n", hazard.Level.String()+":", hazard.Text)
	}
}

// writeServers writes one row for each server.
func writeServers(w io.Writer, servers []Facts) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "SERVER\tADDRESS\tSTATE\tVERSION\tROLE\tDATABASES\tMAXMEMORY-POLICY\tPERSISTENCE\tRUN_ID")
	for _, s := range servers {
		address, version, role, databases := s.Name, s.Version, s.Role, ""
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
		cells := []string{s.Title, address, s.State, version, role, databases, s.Policy, s.Persistence, shortRunID(s.RunID)}
		for i, cell := range cells {
			cells[i] = cmp.Or(cell, "-")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
}

// settingList has settings in the order of the file.
type settingList []config.Shown

func (l settingList) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	for _, s := range l {
		fmt.Fprintf(table, "%s\t%s\n", s.Name, s.Value)
	}
}

// MarshalJSON makes one object with a member for each setting.
func (l settingList) MarshalJSON() ([]byte, error) {
	values := map[string]string{}
	for _, s := range l {
		values[s.Name] = s.Value
	}
	return json.Marshal(values)
}
