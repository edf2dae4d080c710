package remote_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"

	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/server"
	"github.com/foldlog/foldlog/study"
)

// A study journal at a server is a study.Storage as one on disk is: several machines
// without a common file system work on one search.
func ExampleClient_CreateJournal() {
	root, err := os.MkdirTemp("", "root")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	logs, err := server.New(server.Options{Root: root}) // what foldlog serve does
	if err != nil {
		log.Fatal(err)
	}
	defer logs.Close()
	at := httptest.NewServer(logs.Handler())
	defer at.Close()

	ctx := context.Background()
	client := &remote.Client{Base: at.URL}
	j, err := client.CreateJournal(ctx, "team/search.atj", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer j.Close()
	_, created, err := study.OpenOrCreate(ctx, j, study.Config{Name: "resnet", Directions: []study.Direction{study.Minimize}})
	if err != nil {
		log.Fatal(err)
	}
	there, _, err := client.Logs(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(created, there[0].Kind, there[0].Path)
	// Output: true study journal team/search.atj
}
