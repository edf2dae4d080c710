package logkind

import (
	"context"
	"errors"
	"os"

	"github.com/foldlog/foldlog/internal/cli"
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
		return paths, dir, cli.Failed("open", arg, err)
	}
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		return nil, false, cli.Failed("open", arg, err)
	case !info.IsDir():
		return []string{arg}, false, nil
	}
	paths, err = streamsUnder(arg)
	return paths, true, err
}

// streamsAt lists the streams at a server. A log of another kind is one that no event
// is found in.
func streamsAt(ctx context.Context, c *remote.Client, at string) (paths []string, dir bool, err error) {
	logs, _, err := c.Logs(ctx, at)
	if err != nil {
		return nil, false, err
	}
	if len(logs) == 0 && at != "" {
		return nil, false, noLogAt(c)
	}
	one := itself(logs, at)
	for _, l := range logs {
		if one || l.Kind == MetricsStream {
			paths = append(paths, World{Server: c}.NameOf(l.Path))
		}
	}
	return paths, !one, nil
}

// Resolved puts in the place of each address, which may be that of a run's page or of a
// directory, the streams that it names.
func (f Finder) Resolved(ctx context.Context, args []string) (paths []string, err error) {
	for _, arg := range args {
		c, at, err := f.ReadingServer(arg)
		if err != nil {
			return nil, err
		}
		under := []string{arg}
		if c != nil {
			if under, _, err = streamsAt(ctx, c, at); err == nil && len(under) == 0 {
				err = errors.New("no metrics streams there")
			}
		}
		if err != nil {
			return nil, cli.Failed("open", arg, err)
		}
		paths = append(paths, under...)
	}
	return paths, nil
}

// streamsUnder lists the files under a directory that are streams by content.
func streamsUnder(dir string) ([]string, error) {
	paths, err := metrics.FindStreams(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, path := range paths {
		start, err := readStart(path)
		if err != nil {
			return nil, cli.Failed("open", path, err)
		}
		if metrics.IsStream(start) {
			found = append(found, path)
		}
	}
	return found, nil
}
