// Command redlock-manifests judges deployment files as their programs would: it uses
// Kubernetes's own types for Kubernetes objects, and the loader of docker compose for a
// compose file. It prints what is wrong, and then exits with an error.
//
//	redlock-manifests kubernetes FILE...    each file stands alone with the first
//	redlock-manifests compose FILE
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: redlock-manifests kubernetes|compose FILE...")
		os.Exit(2)
	}
	var wrong []string
	switch os.Args[1] {
	case "kubernetes":
		wrong = judgeKubernetes(os.Args[2:])
	case "compose":
		wrong = judgeCompose(os.Args[2])
	default:
		wrong = []string{"nothing is known of " + os.Args[1]}
	}
	for _, text := range wrong {
		fmt.Println(text)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}
