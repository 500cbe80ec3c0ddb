package main

import (
	"fmt"
	"io"
	"log"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// judgeChart lints a chart as helm lint does, renders it with values, which are YAML, and judges the
// objects. parent is the folder of a chart that has this one as a dependency, or "". It prints the objects.
func judgeChart(dir, parent, values string) (wrong []string) {
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return []string{err.Error()}
	}
	if parent == "" {
		for _, message := range lint.All(dir, given, "default", false).Messages {
			if message.Severity >= support.WarningSev {
				wrong = append(wrong, message.Error())
			}
		}
	}
	documents, err := render(dir, parent, given)
	if err != nil {
		return append(wrong, err.Error())
	}
	all := newObjects()
	for i, document := range documents {
		if err := all.add([]byte(document)); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s, object %d: %v\n%s", dir, i+1, err, document))
		}
	}
	fmt.Println(strings.Join(documents, "\n---\n"))
	return append(wrong, all.judge()...)
}

// The chart's links to the alerts and the dashboard are meant.
func init() { log.SetOutput(io.Discard) }

// render returns the objects of a chart, in the order of its templates, for a release with the name redlock.
func render(dir, parent string, values chartutil.Values) (documents []string, err error) {
	c, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	if parent != "" {
		within := c
		if c, err = loader.Load(parent); err != nil {
			return nil, err
		}
		c.AddDependency(within)
		c.Metadata.Dependencies = append(c.Metadata.Dependencies, &chart.Dependency{Name: within.Name(), Version: within.Metadata.Version})
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, err
	}
	given, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "redlock", Namespace: "default", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, given)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, document := range separator.Split(files[name], -1) {
			if document = strings.TrimSpace(document); document != "" {
				documents = append(documents, document)
			}
		}
	}
	return documents, nil
}
