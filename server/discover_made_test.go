package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/server/internal/wire"
)

// TestWhatIsMadeDuringAScanIsThere makes journals and datagen logs while everything under
// the root is looked at: what a scan came by before it was made is there all the same.
func TestWhatIsMadeDuringAScanIsThere(t *testing.T) {
	s := newSite(t, Options{})
	for i := range 300 {
		if err := os.Mkdir(filepath.Join(s.root, fmt.Sprint("z", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var scanning sync.WaitGroup
	scanning.Go(func() {
		for ctx.Err() == nil {
			s.find.scan()
		}
	})
	for i := range 6 {
		path := fmt.Sprintf("a%d.atj", i)
		s.post("/api/v1/journals", map[string]any{"path": path}, nil)
		log, err := s.journal(path)
		if err != nil {
			t.Fatal(err)
		}
		var made wire.CreatedExperiment
		s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": fmt.Sprint("e", i)}, &made)
		for range 10 {
			if now, err := s.journal(path); err != nil || now != log {
				t.Fatalf("%s is forgotten: %v", path, err)
			}
			if a := s.do("GET", "/api/v1/datagen/"+made.ID, nil); a.status != 200 {
				t.Fatalf("experiment %d is forgotten: %d %s", i, a.status, a.body)
			}
		}
	}
	stop()
	scanning.Wait()
}
