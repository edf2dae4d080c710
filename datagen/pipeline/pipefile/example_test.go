package pipefile_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/foldlog/foldlog/datagen/pipeline/pipefile"
)

// A pipeline in a file and its items, which package pipeline runs.
func Example() {
	f, err := pipefile.Parse("pipeline.yaml", []byte(`
pipeline: stories
steps:
  - {step: write, run: "python3 write.py"}
  - {filter: good, keep: score > 1}
`), ".")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Pipeline, f.Experiment, len(f.Steps.Steps))
	items := strings.NewReader("\"story-1\"\n{\"key\": \"story-2\", \"fields\": {\"topic\": \"rain\"}}\n")
	for source, err := range pipefile.Sources("items.jsonl", items, ".", "") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(source.Key)
	}
	// Output:
	// stories main 2
	// story-1
	// story-2
}
