package runner

import (
	"errors"
	"fmt"
	"strings"
)

// command is a command line with placeholders, split once.
type command []template

// template is one text with placeholders.
type template []piece

// piece is literal text, or the name of a parameter whose value belongs there;
// then text is what stands there without one.
type piece struct {
	text  string
	name  string
	param bool
}

// parseCommand splits each argument at its placeholders: {name} stands for a
// parameter, {name:-text} for one that the trial may not have, {{ and }} for
// braces. A closing brace on its own is itself.
func parseCommand(args []string) (command, error) {
	if len(args) == 0 {
		return nil, errors.New("no command to run")
	}
	c := make(command, len(args))
	for i, arg := range args {
		t, err := parseTemplate(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", arg, err)
		}
		c[i] = t
	}
	return c, nil
}

func parseTemplate(arg string) (template, error) {
	var pieces template
	var text strings.Builder
	for {
		before, rest, found := strings.Cut(arg, "{")
		text.WriteString(strings.ReplaceAll(before, "}}", "}"))
		if !found {
			break
		}
		if after, doubled := strings.CutPrefix(rest, "{"); doubled {
			text.WriteByte('{')
			arg = after
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		name, absent, _ := strings.Cut(name, ":-")
		if !closed || name == "" {
			return nil, errors.New("a { begins a placeholder {name}; write {{ and }} for braces")
		}
		pieces = append(pieces, piece{text: text.String()}, piece{text: absent, name: name, param: true})
		text.Reset()
		arg = after
	}
	return append(pieces, piece{text: text.String()}), nil
}

// names returns the parameters that the command names.
func (c command) names() (names []string) {
	for _, arg := range c {
		names = append(names, arg.names()...)
	}
	return names
}

func (t template) names() (names []string) {
	for _, p := range t {
		if p.param {
			names = append(names, p.name)
		}
	}
	return names
}

// fixed tells whether there is no placeholder in it.
func (t template) fixed() bool { return t.names() == nil }

// values are what placeholders stand for.
type values struct {
	texts map[string]string
	// absent are the parameters that the space has and the trial has not.
	absent map[string]bool
}

// expand puts the values in.
func (c command) expand(v values) ([]string, error) {
	args := make([]string, len(c))
	for i, arg := range c {
		var err error
		if args[i], err = arg.expand(v); err != nil {
			return nil, err
		}
	}
	return args, nil
}

func (t template) expand(v values) (string, error) {
	var b strings.Builder
	for _, p := range t {
		text := p.text
		if p.param {
			value, ok := v.texts[p.name]
			switch {
			case ok:
				text = value
			case !v.absent[p.name]:
				return "", fmt.Errorf("no parameter is named %q", p.name)
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}
