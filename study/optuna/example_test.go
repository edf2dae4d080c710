package optuna_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/optuna"
)

// Studies of Optuna's JournalStorage go into a journal and out of it again.
func ExampleExport() {
	ctx := context.Background()
	st := study.NewMemory(study.MemoryOptions{})
	if _, _, err := study.OpenOrCreate(ctx, st, study.Config{Name: "resnet", Directions: []study.Direction{study.Minimize}}); err != nil {
		log.Fatal(err)
	}
	snap := st.Snapshot()
	resnet, _ := snap.StudyByName("resnet")
	var file strings.Builder
	if err := optuna.Export(&file, snap, []*study.Study{resnet}); err != nil {
		log.Fatal(err)
	}

	dir, err := os.MkdirTemp("", "optuna")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	got, err := optuna.Import(ctx, strings.NewReader(file.String()), filepath.Join(dir, "search.atj"), optuna.ImportOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Studies, "study,", got.Lost, "lines lost")
	// Output: 1 study, 0 lines lost
}
