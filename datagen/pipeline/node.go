package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/foldlog/foldlog/datagen"
)

// Pipeline is what is done with every item.
type Pipeline struct {
	// Steps are done in order.
	Steps []Node
}

// Node is a Step, a Filter, a Loop, a Branch or a Map, by pointer. It must not be
// changed while it runs, and may stand in a pipeline once.
type Node interface {
	name() string
	inside() [][]Node
}

// Func is the work of a step. What it sets through the call becomes one
// checkpoint if it returns nil; an error fails the attempt, and nothing of it
// is kept. It must return soon once ctx ends.
type Func func(ctx context.Context, c *Call) error

// Cond is a condition on an item. It must depend on nothing else.
type Cond func(s *State) (bool, error)

// Step is one piece of work.
type Step struct {
	// Name tells the step from those beside it: letters, digits, ".", "_", "-".
	Name string
	// Run does it.
	Run Func
	// Retry says what becomes of it if it fails.
	Retry Retry

	index int64
}

// Retry is how often a step is tried in one run, and how long it waits between.
type Retry struct {
	// Attempts is how often it is tried, once if 0.
	Attempts int
	// Backoff is the pause after the first failure, DefaultBackoff if 0; it
	// doubles with each further one, up to MaxBackoff (DefaultMaxBackoff if 0).
	Backoff, MaxBackoff time.Duration
}

// The defaults of Retry.
const (
	DefaultBackoff    = time.Second
	DefaultMaxBackoff = time.Minute
)

// pause is how long to wait after so many failures in a row, from 1.
func (r Retry) pause(failures int) time.Duration {
	first, most := r.Backoff, r.MaxBackoff
	if first <= 0 {
		first = DefaultBackoff
	}
	if most <= 0 {
		most = DefaultMaxBackoff
	}
	for range min(failures-1, 62) {
		if first >= most {
			break
		}
		first *= 2
	}
	return min(first, most)
}

// Filter ends an item as filtered unless it is to be kept.
type Filter struct {
	Name string
	// Keep is the condition to go on.
	Keep Cond

	index int64
}

// Loop does its steps again and again. Until is asked after each round; without
// it, Max rounds are made.
type Loop struct {
	Name  string
	Steps []Node
	Until Cond
	// Max is the most rounds; 0 is no limit.
	Max int

	index int64
}

// Branch does the steps of the first case whose condition holds, or none.
type Branch struct {
	Name  string
	Cases []Case

	index int64
}

// Case is one way of a Branch.
type Case struct {
	// Name is its part of the instance, as in "route=odd/flip"; its number in the
	// branch if empty.
	Name string
	// When is its condition; nil always holds.
	When  Cond
	Steps []Node
}

// Map makes sub-items and does its steps with each of them.
type Map struct {
	Name string
	// Over returns what each sub-item begins with. It must depend on nothing but
	// the item.
	Over func(ctx context.Context, s *State) ([]Part, error)
	// Steps are done with each sub-item.
	Steps []Node
	// Parallel is how many sub-items of one item are worked on at once, all of
	// them if 0; the workers of the run bound the steps that run at once.
	Parallel int
	// Reduce is given the sub-items, in order, once all have ended; what it sets
	// belongs to the item. Nil only marks the end.
	Reduce func(ctx context.Context, c *Call, subs []*datagen.Item) error
	// Retry is that of Reduce.
	Retry Retry
	// KeepGoing lets the item go on though sub-items failed. They stay failed.
	KeepGoing bool

	index int64
}

// Part is what a sub-item begins with.
type Part struct {
	// Fields are recorded as the step InputStep.
	Fields []datagen.Change
	// Tags are query tags, a JSON object, nil for none.
	Tags json.RawMessage
}

// InputStep is the step that records what an item begins with.
const InputStep = "input"

func (n *Step) name() string   { return n.Name }
func (n *Filter) name() string { return n.Name }
func (n *Loop) name() string   { return n.Name }
func (n *Branch) name() string { return n.Name }
func (n *Map) name() string    { return n.Name }

func (n *Step) inside() [][]Node   { return nil }
func (n *Filter) inside() [][]Node { return nil }
func (n *Loop) inside() [][]Node   { return [][]Node{n.Steps} }
func (n *Map) inside() [][]Node    { return [][]Node{n.Steps} }
func (n *Branch) inside() [][]Node {
	all := make([][]Node, len(n.Cases))
	for i := range n.Cases {
		all[i] = n.Cases[i].Steps
	}
	return all
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// NodeError says which part of a pipeline is wrong.
type NodeError struct {
	// Node is the part, nil for the whole; Name is the path of its names.
	Node Node
	Name string
	Err  error
}

// Error implements error.
func (e *NodeError) Error() string {
	if e.Name == "" {
		return "check pipeline: " + e.Err.Error()
	}
	return fmt.Sprintf("check pipeline: %s: %v", e.Name, e.Err)
}

// Unwrap returns what is wrong.
func (e *NodeError) Unwrap() error { return e.Err }

// Check says whether a pipeline can be run, as a *NodeError, and numbers its
// steps. Run calls it.
func (p *Pipeline) Check() error {
	k := &checker{next: 1}
	if len(p.Steps) == 0 {
		return &NodeError{Err: errors.New("it has no steps")}
	}
	return k.nodes("", p.Steps)
}

type checker struct{ next int64 }

func (k *checker) nodes(path string, nodes []Node) error {
	seen := map[string]bool{}
	for _, n := range nodes {
		if n == nil {
			return &NodeError{Name: path, Err: errors.New("a step is nil")}
		}
		name := n.name()
		at := path + name
		fail := func(format string, args ...any) error {
			return &NodeError{n, at, fmt.Errorf(format, args...)}
		}
		switch {
		case !nameForm.MatchString(name):
			return fail("name %q: letters, digits, dots, underscores and hyphens are allowed, 100 at most", name)
		case name == InputStep:
			return fail("the name is that of the step which records what an item begins with")
		case seen[name]:
			return fail("the name stands twice in one sequence")
		}
		seen[name] = true
		if err := k.node(n, fail); err != nil {
			return err
		}
		for _, inner := range n.inside() {
			if err := k.nodes(at+"/", inner); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *checker) node(n Node, fail func(string, ...any) error) error {
	index := k.next
	k.next++
	switch n := n.(type) {
	case *Step:
		n.index = index
		if n.Run == nil {
			return fail("it has nothing to run")
		}
		return k.retry(n.Retry, fail)
	case *Filter:
		n.index = index
		if n.Keep == nil {
			return fail("it has no condition")
		}
	case *Loop:
		n.index = index
		switch {
		case n.Until == nil && n.Max == 0:
			return fail("the loop would never end: give a condition or a most of rounds")
		case n.Max < 0:
			return fail("at most %d rounds", n.Max)
		case len(n.Steps) == 0:
			return fail("the loop has no steps")
		}
	case *Branch:
		n.index = index
		return checkCases(n, fail)
	case *Map:
		n.index = index
		switch {
		case n.Over == nil:
			return fail("it does not say over what")
		case len(n.Steps) == 0:
			return fail("it has no steps")
		case n.Parallel < 0:
			return fail("%d in parallel", n.Parallel)
		}
		return k.retry(n.Retry, fail)
	}
	return nil
}

func (k *checker) retry(r Retry, fail func(string, ...any) error) error {
	if r.Attempts < 0 || r.Backoff < 0 || r.MaxBackoff < 0 {
		return fail("attempts and pauses must not be negative")
	}
	return nil
}

func checkCases(n *Branch, fail func(string, ...any) error) error {
	seen := map[string]bool{}
	for i := range n.Cases {
		name := n.caseName(i)
		if !nameForm.MatchString(name) {
			return fail("case name %q: letters, digits, dots, underscores and hyphens are allowed, 100 at most", name)
		}
		if seen[name] {
			return fail("the case %q stands twice", name)
		}
		seen[name] = true
	}
	return nil
}

func (n *Branch) caseName(i int) string {
	if n.Cases[i].Name != "" {
		return n.Cases[i].Name
	}
	return fmt.Sprint(i)
}
