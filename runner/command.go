package runner

import (
	"errors"
	"fmt"
	"strings"
)

// command is a command line with placeholders, split once.
type command [][]piece

// piece is literal text, or the name of a parameter whose value belongs there.
type piece struct {
	text  string
	param bool
}

// parseCommand splits each argument at its placeholders: {name} stands for a
// parameter, {{ and }} for braces. A closing brace on its own is itself.
func parseCommand(args []string) (command, error) {
	if len(args) == 0 {
		return nil, errors.New("no command to run")
	}
	c := make(command, len(args))
	for i, arg := range args {
		pieces, err := parseArg(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", arg, err)
		}
		c[i] = pieces
	}
	return c, nil
}

func parseArg(arg string) ([]piece, error) {
	var pieces []piece
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
		if !closed || name == "" {
			return nil, errors.New("a { begins a placeholder {name}; write {{ and }} for braces")
		}
		pieces = append(pieces, piece{text: text.String()}, piece{text: name, param: true})
		text.Reset()
		arg = after
	}
	return append(pieces, piece{text: text.String()}), nil
}

// names returns the parameters that the command names.
func (c command) names() []string {
	var names []string
	for _, arg := range c {
		for _, p := range arg {
			if p.param {
				names = append(names, p.text)
			}
		}
	}
	return names
}

// expand puts the values in.
func (c command) expand(values map[string]string) ([]string, error) {
	args := make([]string, len(c))
	for i, arg := range c {
		var b strings.Builder
		for _, p := range arg {
			text := p.text
			if p.param {
				v, ok := values[p.text]
				if !ok {
					return nil, fmt.Errorf("no parameter is named %q", p.text)
				}
				text = v
			}
			b.WriteString(text)
		}
		args[i] = b.String()
	}
	return args, nil
}
