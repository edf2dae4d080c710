package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/foldlog/foldlog/internal/cli"
)

// readLines sends the lines of a session's input that are not empty, nil for
// one of more than most bytes, and closes lines at the end.
func readLines(ctx context.Context, in io.Reader, most int, lines chan<- []byte) error {
	defer close(lines)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r, most)
		if line == nil || len(line) > 0 {
			select {
			case lines <- line:
			case <-ctx.Done():
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read requests: %w", err)
		}
	}
}

// readLine reads a line to its end, and drops it if it is too long.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	line, long := []byte{}, false
	for {
		piece, err := r.ReadSlice('\n')
		if long = long || len(line)+len(piece) > most; long {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if !long {
			line = append([]byte{}, bytes.TrimSpace(line)...)
		}
		return line, err
	}
}

// WrongRequest says what is wrong with a line, nil for one that was too long.
func WrongRequest(line []byte, most int, err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case line == nil:
		return cli.Usagef("request: longer than %d bytes", most)
	case errors.As(err, &kind) && kind.Field == "":
		return cli.Usagef("request: want an object, not %s", kind.Value)
	case errors.As(err, &kind):
		return cli.Usagef("request: %q cannot be %s", kind.Field, kind.Value)
	}
	return cli.Usagef("request: %v", err)
}
