package main

import (
	"context"
	"fmt"
	"os"

	"github.com/foldlog/foldlog/journal"
)

// holdLease takes the lease of a journal, says so, and never lays it down.
func holdLease(path string) int {
	ctx := context.Background()
	w, err := journal.OpenWriter(ctx, path, journal.WriterOptions{Worker: new(uint64(77))}, lines{})
	if err == nil {
		err = w.Do(ctx, func(*journal.Tx) error {
			fmt.Println("holding")
			select {}
		})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
