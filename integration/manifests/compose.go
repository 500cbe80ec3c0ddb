package main

import (
	"context"
	"fmt"

	"github.com/compose-spec/compose-go/v2/cli"
)

// judgeCompose loads the file as docker compose config does, with schema and references. Then
// it checks the properties of every service that an operator relies on.
func judgeCompose(file string) (wrong []string) {
	options, err := cli.NewProjectOptions([]string{file})
	if err != nil {
		return []string{err.Error()}
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return []string{err.Error()}
	}
	for name, service := range project.Services {
		if service.Restart == "" {
			wrong = append(wrong, fmt.Sprintf("%s: nobody restarts %s", file, name))
		}
		if service.Build == nil && service.HealthCheck == nil {
			wrong = append(wrong, fmt.Sprintf("%s: nobody asks whether %s is well", file, name))
		}
	}
	return wrong
}
