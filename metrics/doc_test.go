package metrics

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../docs/format/metrics.md"

// examples returns the blocks of the format's page with a language.
func examples(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	var blocks []string
	for i, part := range strings.Split(string(text), "```") {
		if body, ok := strings.CutPrefix(part, language+"\n"); ok && i%2 == 1 {
			blocks = append(blocks, body)
		}
	}
	return blocks
}

func TestExamplesOfTheFormatPageAreSoundAndSpelledAsWeDo(t *testing.T) {
	blocks := examples(t, "jsonl")
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		if found, _ := checked(t, block, CheckOptions{}); len(found) > 0 {
			t.Error(found)
		}
		var again []byte
		must(t, ReadStream(strings.NewReader(block), func(it *Item) { again = it.Event.Append(again) }))
		if diff := cmp.Diff(block, string(again)); diff != "" {
			t.Errorf("-page +written:\n%s", diff)
		}
	}
}

func TestExamplesOfAnnotationsAreRecognised(t *testing.T) {
	seen := map[NoteClass]int{}
	must(t, ReadStream(strings.NewReader(strings.Join(examples(t, "jsonl"), "")), func(it *Item) {
		if it.Event.Kind == KindAnnotation {
			seen[ReadNote(&it.Event).Class]++
		}
	}))
	want := map[NoteClass]int{NoteLowering: 1, NoteMemoryPlan: 1, NoteMemoryRetry: 1, NoteMemoryPeak: 1, NoteStacking: 1,
		NoteStage: 1, NoteCheckpoint: 1, NoteResumed: 1, NoteInterrupted: 1, NoteFailed: 1}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestWorkedExampleOfTheFormatPageIsTheGolden(t *testing.T) {
	golden, err := os.ReadFile("testdata/document.jsonl")
	must(t, err)
	for _, block := range examples(t, "") {
		if block == string(golden) {
			return
		}
	}
	t.Errorf("%s does not have it", page)
}
