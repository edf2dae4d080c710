package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrOutputClosed is the error of a write to a standard output whose reader
// has gone, as in `foldlog cat LOG | head`. It ends a command quietly (see
// Report).
var ErrOutputClosed = errors.New("standard output is closed")

// output is standard output with a name for the one failure that is no fault.
type output struct{ file *os.File }

func (o *output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if err != nil && isClosedPipe(err) {
		err = ErrOutputClosed
	}
	return n, err
}

// Fd lets IsTerminal look through the wrapper.
func (o *output) Fd() uintptr { return o.file.Fd() }

// WriteJSON prints v as one indented JSON object and a newline. Only what
// JSON requires is escaped, so that names stay readable.
func WriteJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// WriteJSONLine prints v as one line of JSON. Several of them make JSON Lines.
func WriteJSONLine(w io.Writer, v any) error { return writeJSON(w, v, "") }

func writeJSON(w io.Writer, v any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print json: %w", err)
	}
	return nil
}

// Buffered runs print with a buffer before w and flushes it, also when print
// fails, so that what came before a fault is seen. The error of print wins.
func Buffered(w io.Writer, print func(io.Writer) error) error {
	buf := bufio.NewWriterSize(w, 64<<10)
	err := print(buf)
	if flushErr := buf.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("write results: %w", flushErr)
	}
	return err
}
