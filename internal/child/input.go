package child

import (
	"io"
	"os"
	"os/exec"
)

// input is the writing side of a command's standard input.
type input struct {
	r, w *os.File
	done chan struct{}
}

// newInput copies a reader that does not fail to the standard input of a command. A nil
// reader is no input.
func newInput(cmd *exec.Cmd, from io.Reader) (*input, error) {
	if from == nil {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	i := &input{r: r, w: w, done: make(chan struct{})}
	cmd.Stdin = r
	go func() {
		defer close(i.done)
		io.Copy(w, from) // whoever does not read all of it need not
		w.Close()
	}()
	return i, nil
}

// started is called once the command has its end of the pipe, or will never have it.
func (i *input) started() {
	if i != nil {
		i.r.Close()
	}
}

// finish ends the input after the command has ended, whoever else still holds it.
func (i *input) finish() {
	if i != nil {
		i.w.Close()
		<-i.done
	}
}
