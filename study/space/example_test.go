package space_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/foldlog/foldlog/study/space"
)

// A search space as people write it. What is wrong in one has a place.
func Example() {
	declared, err := space.Parse("space.yaml", []byte(`
lr:        {type: float, low: 1e-5, high: 0.1, log: true}
optimizer: {type: categorical, choices: [adam, sgd]}
momentum:  {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
`))
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range declared.Params {
		fmt.Println(p.Name, len(p.When))
	}
	_, err = space.Parse("space.yaml", []byte("lr: {type: flot, low: 0, high: 1}"))
	if wrong := (*space.Error)(nil); errors.As(err, &wrong) {
		fmt.Println(wrong.Line, wrong.Column, wrong.Err)
	}
	// Output:
	// lr 0
	// optimizer 0
	// momentum 1
	// 1 12 parameter "lr": type "flot" is unknown
}
