package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"redlock-proxy/proxy/config"
)

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

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
