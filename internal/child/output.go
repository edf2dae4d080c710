package child

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

const (
	// outputPatience is how long the output of a command may stay open after its
	// end, as a child keeps it that was left behind.
	outputPatience = 5 * time.Second
	// lateRead and lateBytes bound what is still read after that: what lies in
	// the pipe is there at once, and a pipe holds no more.
	lateRead  = 50 * time.Millisecond
	lateBytes = 1 << 20
)

// output is the reading side of a command's standard output or error.
type output struct {
	r, w *os.File
	// until is when reading is to end, nil while the command runs.
	until atomic.Pointer[time.Time]
	done  chan struct{}
}

// newOutput copies what is written to its w to a writer that does not fail.
func newOutput(to io.Writer) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &output{r: r, w: w, done: make(chan struct{})}
	go o.copy(to)
	return o, nil
}

func (o *output) copy(to io.Writer) {
	defer close(o.done)
	buf := make([]byte, 32<<10)
	for late := 0; late < lateBytes; {
		n, err := o.r.Read(buf)
		to.Write(buf[:n])
		if err != nil {
			return
		}
		until := o.until.Load()
		if until == nil {
			continue
		}
		// However long the writer above took, what was written in time is read.
		if soon := time.Now().Add(lateRead); soon.After(*until) {
			late += n
			o.r.SetReadDeadline(soon)
		}
	}
}

// finish waits after the command's end until everybody has closed the output,
// or until a time.
func (o *output) finish(until time.Time) {
	o.until.Store(&until)
	if err := o.r.SetReadDeadline(until); errors.Is(err, os.ErrNoDeadline) {
		closing := time.AfterFunc(time.Until(until), func() { o.r.Close() })
		defer closing.Stop()
	}
	<-o.done
	o.r.Close()
}
