package objstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/foldlog/foldlog/objstore"
)

func ExampleStore() {
	ctx := context.Background()
	var store objstore.Store = objstore.NewMemory()
	if err := store.PutIfAbsent(ctx, "versions/1", []byte("ours")); err != nil {
		log.Fatal(err)
	}
	err := store.PutIfAbsent(ctx, "versions/1", []byte("theirs"))
	fmt.Println(err, errors.Is(err, objstore.ErrExists))
	// Output: put if absent versions/1: object exists true
}

func ExampleElection() {
	ctx := context.Background()
	store := objstore.NewMemory()
	mine, err := objstore.NewElection(store, "leases/maintenance", objstore.LeaseOptions{Holder: "worker 1"})
	if err != nil {
		log.Fatal(err)
	}
	lease, err := mine.Try(ctx)
	if err != nil {
		log.Fatal(err)
	}
	other, err := objstore.NewElection(store, "leases/maintenance", objstore.LeaseOptions{Holder: "worker 2"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = other.Try(ctx)
	fmt.Println(err)
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = other.Try(ctx)
	fmt.Println(err)
	// Output:
	// lease is held by worker 1
	// <nil>
}
