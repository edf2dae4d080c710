// Command train trains the network of package digits once; package trial has
// its flags and what it prints.
package main

import (
	"os"

	"github.com/foldlog/foldlog/examples/digits/trial"
)

func main() { os.Exit(trial.Main(os.Args[1:])) }
