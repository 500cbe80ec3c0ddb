// Command gencommands writes the proxy's built-in table of commands. It merges the
// replies of real servers to COMMAND, and adds the commands in newer.go that none of
// these servers knows.
//
// Usage: gencommands FILE ADDRESS...
//
// If several servers know a command, the last address wins, so name the newest server
// last. Each line of FILE is one element of a reply to COMMAND in RESP2. It leaves out
// the ACL categories, tips and notes, because the proxy does not read them.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// The indexes in an element of a reply to COMMAND, and the number of them.
const (
	placeName        = 0
	placeFlags       = 2
	placeCategories  = 6
	placeTips        = 7
	placeKeySpecs    = 8
	placeSubcommands = 9
	places           = 10
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: gencommands FILE ADDRESS...")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "gencommands:", err)
		os.Exit(1)
	}
}

func generate(file string, addresses []string) error {
	table := map[string][]any{}
	for _, command := range newer() {
		table[command[placeName].(string)] = command
	}
	for _, address := range addresses {
		reply, err := ask(address)
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		if err := merge(table, reply); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}
	var out bytes.Buffer
	for i, name := range slices.Sorted(maps.Keys(table)) {
		line, err := json.Marshal(table[name])
		if err != nil {
			return err
		}
		out.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
		out.Write(line)
	}
	out.WriteString("\n]\n")
	return os.WriteFile(file, out.Bytes(), 0o644)
}

func ask(address string) ([]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2})
	defer client.Close()
	return client.Do(ctx, "COMMAND").Slice()
}

// merge puts the commands of a reply into the table, over those of the same name. It
// keeps the subcommands that only the table has.
func merge(table map[string][]any, reply []any) error {
	for _, element := range reply {
		command, ok := element.([]any)
		if !ok || len(command) < places {
			return fmt.Errorf("an element of %d places, servers from 7.0 on give %d", len(command), places)
		}
		name, ok := command[placeName].(string)
		if !ok {
			return fmt.Errorf("a command without a name")
		}
		subcommands := map[string][]any{}
		if known := table[name]; known != nil {
			for _, sub := range known[placeSubcommands].([]any) {
				subcommands[sub.([]any)[placeName].(string)] = sub.([]any)
			}
		}
		list, ok := command[placeSubcommands].([]any)
		if !ok {
			return fmt.Errorf("%s: no list of subcommands", name)
		}
		if err := merge(subcommands, list); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		merged := []any{}
		for _, sub := range slices.Sorted(maps.Keys(subcommands)) {
			merged = append(merged, subcommands[sub])
		}
		table[name] = trim(command[:places], merged)
	}
	return nil
}

// trim drops the fields that the proxy does not read. It sorts the flags: servers send
// them in no particular order, and the diffs of the file should stay small.
func trim(command, subcommands []any) []any {
	sortStrings(command[placeFlags])
	command[placeCategories] = []any{}
	command[placeTips] = []any{}
	command[placeSubcommands] = subcommands
	specs, _ := command[placeKeySpecs].([]any)
	for i, spec := range specs {
		pairs, _ := spec.([]any)
		kept := []any{}
		for j := 0; j+1 < len(pairs); j += 2 {
			if pairs[j] == "flags" {
				sortStrings(pairs[j+1])
			}
			if pairs[j] != "notes" {
				kept = append(kept, pairs[j], pairs[j+1])
			}
		}
		specs[i] = kept
	}
	return command
}

func sortStrings(list any) {
	words, _ := list.([]any)
	slices.SortFunc(words, func(a, b any) int {
		return bytes.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b)))
	})
}
