package pipefile

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/internal/yamldoc"
)

// stepKind is a key that says what a step is, with its other keys.
type stepKind struct {
	key  string
	more []string
	read func(r *reader, m *mapping, name string) (pipeline.Node, error)
}

func stepKinds() []stepKind {
	return []stepKind{
		{"step", []string{"run", "blobs", "retry", "timeout", "env"}, (*reader).step},
		{"filter", []string{"keep"}, (*reader).filter},
		{"loop", []string{"until", "max", "steps"}, (*reader).loop},
		{"branch", []string{"cases"}, (*reader).branch},
		{"map", []string{"over", "as", "with", "parallel", "keep_going", "steps", "reduce"}, (*reader).fanOut},
	}
}

func (r *reader) steps(n *yamldoc.Node) ([]pipeline.Node, error) {
	list, ok := n.Items()
	if !ok {
		return nil, n.Fail(errors.New("steps must be a list"), "begin each step with a hyphen, as in - step: NAME")
	}
	nodes := make([]pipeline.Node, 0, len(list))
	for _, v := range list {
		node, err := r.node(&v)
		if err != nil {
			return nil, err
		}
		r.nodes[node] = &v
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func (r *reader) node(n *yamldoc.Node) (pipeline.Node, error) {
	any, err := r.mapping(n, "a step")
	if err != nil {
		return nil, err
	}
	for _, kind := range stepKinds() {
		if any.values[kind.key] == nil {
			continue
		}
		m, err := r.mapping(n, "a "+kind.key, append([]string{kind.key}, kind.more...)...)
		if err != nil {
			return nil, err
		}
		name, err := r.text(m, kind.key)
		if err != nil {
			return nil, err
		}
		return kind.read(r, m, name)
	}
	return nil, n.Fail(errors.New("it does not say what it is"), "begin it with step: NAME, filter: NAME, loop: NAME, branch: NAME or map: NAME")
}

// need returns the value of a key that must be there.
func (r *reader) need(m *mapping, key, advice string) (*yamldoc.Node, error) {
	if n := m.values[key]; n != nil {
		return n, nil
	}
	return nil, m.node.Fail(fmt.Errorf("%s is missing", key), advice)
}

func (r *reader) step(m *mapping, name string) (pipeline.Node, error) {
	c, retry, err := r.command(m)
	if err != nil {
		return nil, err
	}
	return &pipeline.Step{Name: name, Run: c.run, Retry: retry}, nil
}

// command reads what step and reduce have in common.
func (r *reader) command(m *mapping) (*command, pipeline.Retry, error) {
	var retry pipeline.Retry
	n, err := r.need(m, "run", "run: [python3, step.py], or run: a line for the shell")
	if err != nil {
		return nil, retry, err
	}
	c := &command{dir: r.dir}
	if c.args, err = r.commandLine(n); err != nil {
		return nil, retry, err
	}
	if m.values["blobs"] != nil {
		if c.blobs, err = r.texts(m.values["blobs"], "blobs"); err != nil {
			return nil, retry, err
		}
	}
	if c.timeout, err = r.duration(m, "timeout"); err != nil {
		return nil, retry, err
	}
	if c.env, err = r.environment(m); err != nil {
		return nil, retry, err
	}
	retry, err = r.retry(m)
	return c, retry, err
}

// commandLine is a list of arguments, or a text for the shell.
func (r *reader) commandLine(n *yamldoc.Node) ([]string, error) {
	if _, ok := n.Items(); !ok {
		line, err := r.textOf(n, "run")
		if err == nil && strings.TrimSpace(line) == "" {
			err = n.Failf("run is empty")
		}
		return []string{"sh", "-c", line}, err
	}
	args, err := r.texts(n, "run")
	switch {
	case err != nil:
		return nil, err
	case len(args) == 0 || args[0] == "":
		return nil, n.Failf("run is empty")
	}
	if !strings.ContainsAny(args[0], `/\`) {
		if _, err := exec.LookPath(args[0]); err != nil {
			return nil, n.Fail(fmt.Errorf("the program %q is not found", args[0]), "give its path; a relative one begins at the pipeline's file")
		}
	}
	return args, nil
}

func (r *reader) environment(m *mapping) ([]string, error) {
	if m.values["env"] == nil {
		return nil, nil
	}
	vars, err := r.mapping(m.values["env"], "env")
	if err != nil {
		return nil, err
	}
	var env []string
	for _, key := range vars.keys {
		value, err := r.text(vars, key)
		if err != nil {
			return nil, err
		}
		env = append(env, key+"="+value)
	}
	return env, nil
}

func (r *reader) retry(m *mapping) (retry pipeline.Retry, err error) {
	if m.values["retry"] == nil {
		return retry, nil
	}
	if _, ok := whole(m.values["retry"]); ok {
		retry.Attempts, err = r.number(m, "retry", 1, 1)
		return retry, err
	}
	o, err := r.mapping(m.values["retry"], "retry", "attempts", "backoff", "max_backoff")
	if err != nil {
		return retry, err
	}
	if retry.Attempts, err = r.number(o, "attempts", 1, 1); err != nil {
		return retry, err
	}
	if retry.Backoff, err = r.duration(o, "backoff"); err != nil {
		return retry, err
	}
	retry.MaxBackoff, err = r.duration(o, "max_backoff")
	return retry, err
}

func (r *reader) cond(m *mapping, key string) (pipeline.Cond, error) {
	n := m.values[key]
	if n == nil {
		return nil, nil
	}
	text, err := r.condText(n, key)
	if err != nil {
		return nil, err
	}
	c, err := parseCond(text)
	if err != nil {
		return nil, r.condError(n, text, err)
	}
	return c, nil
}

func (r *reader) filter(m *mapping, name string) (pipeline.Node, error) {
	if _, err := r.need(m, "keep", "keep: CONDITION says which items go on"); err != nil {
		return nil, err
	}
	keep, err := r.cond(m, "keep")
	return &pipeline.Filter{Name: name, Keep: keep}, err
}

func (r *reader) loop(m *mapping, name string) (pipeline.Node, error) {
	l := &pipeline.Loop{Name: name}
	var err error
	if l.Until, err = r.cond(m, "until"); err != nil {
		return nil, err
	}
	if l.Max, err = r.number(m, "max", 1, 0); err != nil {
		return nil, err
	}
	n, err := r.need(m, "steps", "list them under steps:")
	if err != nil {
		return nil, err
	}
	l.Steps, err = r.steps(n)
	return l, err
}

func (r *reader) branch(m *mapping, name string) (pipeline.Node, error) {
	n, err := r.need(m, "cases", "list them under cases:, each with when: CONDITION and steps:")
	if err != nil {
		return nil, err
	}
	list, ok := n.Items()
	if !ok {
		return nil, n.Failf("cases must be a list")
	}
	b := &pipeline.Branch{Name: name}
	for i, v := range list {
		c, err := r.branchCase(&v)
		if err != nil {
			return nil, err
		}
		if c.When == nil && i < len(list)-1 {
			return nil, v.Fail(errors.New("the cases after one without a condition are never taken"), "put it last")
		}
		b.Cases = append(b.Cases, c)
	}
	return b, nil
}

func (r *reader) branchCase(n *yamldoc.Node) (c pipeline.Case, err error) {
	m, err := r.mapping(n, "a case", "name", "when", "steps")
	if err != nil {
		return c, err
	}
	if c.Name, err = r.text(m, "name"); err != nil {
		return c, err
	}
	if c.When, err = r.cond(m, "when"); err != nil {
		return c, err
	}
	if m.values["steps"] != nil {
		c.Steps, err = r.steps(m.values["steps"])
	}
	return c, err
}

func (r *reader) fanOut(m *mapping, name string) (pipeline.Node, error) {
	f := &fan{as: "value"}
	p := &pipeline.Map{Name: name, Over: f.parts}
	over, err := r.need(m, "over", "over: a field with a list or a number, or a number")
	if err != nil {
		return nil, err
	}
	if f.field, err = r.text(m, "over"); err != nil {
		return nil, err
	}
	if count, ok := whole(over); ok {
		f.field = ""
		if f.count = count; count < 0 || count > maxParts {
			return nil, over.Failf("over must be from 0 to %d", maxParts)
		}
	}
	if m.values["as"] != nil {
		if f.as, err = r.text(m, "as"); err != nil {
			return nil, err
		}
	}
	if m.values["with"] != nil {
		if f.with, err = r.texts(m.values["with"], "with"); err != nil {
			return nil, err
		}
	}
	if slices.Contains(f.with, f.as) {
		return nil, m.values["with"].Failf("%q is the field of the part itself", f.as)
	}
	if p.Parallel, err = r.number(m, "parallel", 1, 0); err != nil {
		return nil, err
	}
	if p.KeepGoing, err = r.truth(m, "keep_going"); err != nil {
		return nil, err
	}
	steps, err := r.need(m, "steps", "list them under steps:")
	if err != nil {
		return nil, err
	}
	if p.Steps, err = r.steps(steps); err != nil {
		return nil, err
	}
	return p, r.reduce(m, p)
}

func (r *reader) reduce(m *mapping, p *pipeline.Map) error {
	if m.values["reduce"] == nil {
		return nil
	}
	o, err := r.mapping(m.values["reduce"], "reduce", "run", "blobs", "retry", "timeout", "env")
	if err != nil {
		return err
	}
	c, retry, err := r.command(o)
	if err != nil {
		return err
	}
	p.Reduce, p.Retry = c.reduce, retry
	return nil
}
