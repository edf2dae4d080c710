package logkind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
)

// Streams lists the files that operands name: a file is itself, of a directory
// every stream under it. Without operands it is the root.
func (f Finder) Streams(ctx context.Context, args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{f.Root(nil)}
	}
	var found []string
	for _, arg := range args {
		under, dir, err := f.streamsOf(ctx, arg)
		if err != nil {
			return nil, err
		}
		if dir && len(under) == 0 {
			f.Notef("no metrics streams under %s", arg)
		}
		found = append(found, under...)
	}
	return found, nil
}

// streamsOf lists what one operand names, and tells whether it is a directory.
func (f Finder) streamsOf(ctx context.Context, arg string) (paths []string, dir bool, err error) {
	c, at, err := f.ReadingServer(arg)
	if err != nil {
		return nil, false, err
	}
	if c != nil {
		paths, dir, err = streamsAt(ctx, c, at)
		return paths, dir, ofOperand(arg, err)
	}
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		return nil, false, ofOperand(arg, err)
	case !info.IsDir():
		return []string{arg}, false, ofOperand(arg, f.noStream(arg))
	}
	if paths, err = streamsUnder(arg); err == nil && len(paths) == 0 {
		err = ofOperand(arg, f.noStream(arg))
	}
	return paths, true, err
}

// noStream is the error of a path that is that of another log. What is no log is left to
// those who read it, who say why.
func (f Finder) noStream(path string) error {
	if other := f.WrongKind(path, MetricsStream); other != nil && other.Kind != "" {
		return other
	}
	return nil
}

// ofOperand names the operand that an error is about.
func ofOperand(arg string, err error) error {
	if err == nil {
		return nil
	}
	if at, ok := err.(*fs.PathError); ok && at.Path == arg {
		err = at.Err
	}
	return fmt.Errorf("%s: %w", arg, err)
}

// streamsAt lists the streams at a server.
func streamsAt(ctx context.Context, c *remote.Client, at string) (paths []string, dir bool, err error) {
	logs, _, err := c.Logs(ctx, at)
	if err != nil {
		return nil, false, err
	}
	if len(logs) == 0 && at != "" {
		return nil, false, noLogAt(c)
	}
	if other := wrongKindAt(c, logs, at, MetricsStream); other != nil {
		return nil, false, other
	}
	one := itself(logs, at)
	for _, l := range logs {
		if l.Kind == MetricsStream {
			paths = append(paths, World{Server: c}.NameOf(l.Path))
		}
	}
	return paths, !one, nil
}

// Resolved puts in the place of each directory, and of each address, which may be that of
// a run's page, the streams that it names. What is not there, and "-", stay as they are.
func (f Finder) Resolved(ctx context.Context, args []string) (paths []string, err error) {
	for _, arg := range args {
		under := []string{arg}
		if _, missing := os.Stat(arg); arg != "-" && (missing == nil || f.away(arg)) {
			if under, _, err = f.streamsOf(ctx, arg); err != nil {
				return nil, err
			}
		}
		if len(under) == 0 {
			return nil, ofOperand(arg, errors.New("no metrics streams there"))
		}
		paths = append(paths, under...)
	}
	return paths, nil
}

// away tells operands that are addresses, wrong ones too.
func (f Finder) away(operand string) bool {
	c, _, err := f.Server(operand)
	return c != nil || err != nil
}

// streamsUnder lists the files under a directory that are streams by content, and those
// that cannot be read: who reads them says why, and goes on with the others.
func streamsUnder(dir string) ([]string, error) {
	paths, err := metrics.FindStreams(dir)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(paths, func(path string) bool { return isNoStream(readStart(path)) }), nil
}

// isNoStream judges by the beginning of a file.
func isNoStream(start []byte, err error) bool {
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // it has gone meanwhile
	}
	return !metrics.IsStream(start)
}
