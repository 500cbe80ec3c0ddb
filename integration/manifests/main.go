// Command redlock-manifests judges deployment files as their programs would: it uses
// Kubernetes's own types for Kubernetes objects, and the loader of docker compose for a
// compose file, and helm's own engine for a chart. It prints what is wrong, and then exits with an error.
//
//	redlock-manifests kubernetes FILE...    each file stands alone with the first
//	redlock-manifests compose FILE
//	redlock-manifests chart FOLDER PARENT VALUES    PARENT is a chart that depends on it, or ""
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: redlock-manifests kubernetes|compose|chart FILE...")
		os.Exit(2)
	}
	var wrong []string
	switch os.Args[1] {
	case "kubernetes":
		wrong = judgeKubernetes(os.Args[2:])
	case "chart":
		if len(os.Args) != 5 {
			wrong = []string{"chart needs three arguments"}
			break
		}
		wrong = judgeChart(os.Args[2], os.Args[3], os.Args[4])
	case "compose":
		wrong = judgeCompose(os.Args[2])
	default:
		wrong = []string{"nothing is known of " + os.Args[1]}
	}
	for _, text := range wrong {
		fmt.Fprintln(os.Stderr, text)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}
