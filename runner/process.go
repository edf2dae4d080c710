package runner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/foldlog/foldlog/internal/child"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
)

// A worker process and its supervisor speak JSON lines: the order to work on the
// worker's standard input, then "drain"; events and at the end a farewell on its
// standard output. The end of its input means that the supervisor is gone, or
// wants it to stop at once: the worker stops its command and gives the trial
// back.

// order is the first line that a worker process gets.
type order struct {
	Config  Config `json:"config"`
	Space   string `json:"space"` // JSON, since a distribution is an interface
	Program string `json:"program"`
	Term    int64  `json:"term_millis"`
}

// message is a line that a worker process writes.
type message struct {
	Worker uint64 `json:"worker,omitempty"`
	Event  *Event `json:"event,omitempty"`
	// Group is the process group of a command that runs, Gone one that has ended.
	Group int    `json:"group,omitempty"`
	Gone  int    `json:"gone,omitempty"`
	Ended bool   `json:"ended,omitempty"`
	Error string `json:"error,omitempty"`
	// Errno is the operating system's number for Error, if it has one.
	Errno syscall.Errno `json:"errno,omitempty"`
}

// toldError is the error with which a worker process has ended, as it told it.
type toldError struct {
	text  string
	errno syscall.Errno
}

func (e *toldError) Error() string { return e.text }

// Unwrap returns what the operating system said, if that was it.
func (e *toldError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

const drainLine = "drain"

// RunProcess is the main function of a worker process: it takes its order from
// in and tells what happens on out, until it is done. With what error it ended it
// tells there, too; the error returned is that nobody could be told.
func RunProcess(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	if !lines.Scan() {
		return errors.Join(errors.New("no order on standard input"), lines.Err())
	}
	var o order
	if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	w := &messenger{enc: json.NewEncoder(out)}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	drain := make(chan struct{})
	go listen(lines, drain, stop)
	err := workOn(ctx, drain, &o, w)
	m := message{Ended: true}
	if err != nil {
		m.Error = err.Error()
		errors.As(err, &m.Errno)
	}
	if sendErr := w.send(m); sendErr != nil {
		return errors.Join(err, sendErr)
	}
	return nil
}

// listen closes drain when told so, and stops the work when the input ends.
func listen(lines *bufio.Scanner, drain chan struct{}, stop context.CancelFunc) {
	defer stop()
	draining := false
	for lines.Scan() {
		if lines.Text() == drainLine && !draining {
			draining = true
			close(drain)
		}
	}
}

type messenger struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (m *messenger) send(msg message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.enc.Encode(msg)
}

func workOn(ctx context.Context, drain <-chan struct{}, o *order, w *messenger) error {
	space, err := study.ParseSpace([]byte(o.Space))
	if err != nil {
		return err
	}
	o.Config.Space = space
	tell := func(e Event) { w.send(message{Event: &e}) }
	st, err := o.open(ctx, tell)
	if err != nil {
		return err
	}
	w.send(message{Worker: st.Worker()})
	_, err = work(ctx, drain, st, o.Config, tell, func(group int, runs bool) {
		if runs {
			w.send(message{Group: group})
		} else {
			w.send(message{Gone: group})
		}
	})
	return errors.Join(err, st.Close())
}

// open opens the journal, on disk or at a server, whose token is FOLDLOG_TOKEN.
func (o *order) open(ctx context.Context, tell func(Event)) (study.Storage, error) {
	base, path, away, err := remote.Parse(o.Config.Journal, "")
	if err != nil {
		return nil, err
	}
	if away {
		c := &remote.Client{Base: base, Token: os.Getenv("FOLDLOG_TOKEN")}
		return c.OpenJournal(ctx, path, nil)
	}
	return study.OpenJournal(ctx, o.Config.Journal, journal.WriterOptions{
		Program: o.Program,
		Term:    time.Duration(o.Term) * time.Millisecond,
		OnTakeover: func(owner journal.Owner) {
			tell(Event{Kind: TakenOver, Worker: owner.Worker, Text: owner.String()})
		},
	})
}

// Supervisor starts worker processes.
type Supervisor struct {
	// Config is what every worker does. Its Journal must be set.
	Config Config
	// Workers is how many processes to start, 1 if 0.
	Workers int
	// Argv is the command line that makes a process call [RunProcess].
	Argv []string
	// Program goes into nothing but the headers of journals that are made.
	Program string
	// Timeout lets the workers finish what they run, and end, after this time;
	// 0 is never.
	Timeout time.Duration
	// MaxFailures lets the workers finish what they run, and end, after so many
	// trials in a row that failed by their command; 0 is never. [DefaultMaxFailures]
	// is what study run takes.
	MaxFailures uint64
	// Term is the journal lease's term, its default if 0.
	Term time.Duration
	// Stderr gets what worker processes print there, nil discards it.
	Stderr io.Writer
	// OnEvent hears of everything, one call at a time. Process counts from 0.
	OnEvent func(process int, e Event)
	// OnStart hears of each worker process: its id in the operating system and
	// as a worker.
	OnStart func(process, pid int, worker uint64)
	// OnEnd hears of each worker process that was killed, a [*KilledError].
	OnEnd func(process int, err error)
}

// Run starts the workers and waits until all have ended. When drain is closed
// they finish what they run and end; when ctx ends they stop their commands
// and give the trials back. The error joins those of the workers; a worker
// process that was killed is among them, unless others could finish. It is a
// [*FailingError] if MaxFailures ended the run.
func (s *Supervisor) Run(ctx context.Context, drain <-chan struct{}) (Report, error) {
	o := order{Config: s.Config, Program: s.Program, Term: s.Term.Milliseconds()}
	o.Config.Space = nil
	space, err := study.AppendSpace(nil, s.Config.Space)
	if err != nil {
		return Report{}, err
	}
	o.Space = string(space)
	first, err := json.Marshal(o)
	if err != nil {
		return Report{}, err
	}
	first = append(first, '\n')
	drain, stop := s.limit(drain)
	defer stop()
	n := max(s.Workers, 1)
	reports, errs := make([]Report, n), make([]error, n)
	var all sync.WaitGroup
	one := &floor{streak: streak{max: s.MaxFailures, end: stop}}
	for i := range n {
		all.Go(func() { reports[i], errs[i] = s.process(ctx, drain, i, first, one) })
	}
	all.Wait()
	var sum Report
	for i := range n {
		sum.Add(reports[i])
	}
	return sum, errors.Join(one.streak.err(), s.judge(errs))
}

// floor is locked for each message of a worker process, so that events are reported and
// counted one at a time.
type floor struct {
	sync.Mutex
	streak streak
}

// limit closes the returned channel with drain, at the timeout, or by stop.
func (s *Supervisor) limit(drain <-chan struct{}) (draining <-chan struct{}, stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	if s.Timeout > 0 {
		ctx, stop = context.WithTimeout(context.Background(), s.Timeout)
	}
	go func() {
		select {
		case <-drain:
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx.Done(), stop
}

// KilledError says that a worker process ended without a farewell.
type KilledError struct {
	// Process counts the workers from 0.
	Process int
	// Err is how it ended.
	Err error
}

func (e *KilledError) Error() string {
	return fmt.Sprintf("worker process %d ended: %v", e.Process+1, e.Err)
}

// Unwrap returns how it ended.
func (e *KilledError) Unwrap() error { return e.Err }

// judge leaves out workers that were killed as long as another came to the end
// of the work.
func (s *Supervisor) judge(errs []error) error {
	var real []error
	finished := false
	for _, err := range errs {
		var killed *KilledError
		if err == nil {
			finished = true
		} else if !errors.As(err, &killed) {
			real = append(real, err)
		}
	}
	if finished || len(real) > 0 {
		return errors.Join(real...)
	}
	return errors.Join(errs...)
}

func (s *Supervisor) process(ctx context.Context, drain <-chan struct{}, i int, first []byte, one *floor) (Report, error) {
	ctx, ended := context.WithCancel(ctx)
	defer ended()
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	child.DetachLasting(cmd)
	cmd.Stderr = s.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return Report{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Report{}, err
	}
	if err := cmd.Start(); err != nil {
		return Report{}, fmt.Errorf("start worker process: %w", err)
	}
	go func() {
		defer in.Close()
		if _, err := in.Write(first); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-drain:
			io.WriteString(in, drainLine+"\n")
		}
		<-ctx.Done()
	}()
	report, groups, told, readErr := s.listen(out, i, cmd.Process.Pid, one)
	for group := range groups {
		child.KillGroup(group) // the kernel ends no more than the command itself
	}
	waitErr := cmd.Wait()
	switch {
	case told != nil:
		return report, fmt.Errorf("worker process %d: %w", i+1, told)
	case waitErr == nil && readErr == nil:
		return report, nil
	}
	err = &KilledError{i, cmp.Or(waitErr, readErr)}
	if s.OnEnd != nil {
		one.Lock()
		s.OnEnd(i, err)
		one.Unlock()
	}
	return report, err
}

// listen takes a worker's messages until it ends. The report is counted from
// the events, so that a worker that is killed leaves one too. Groups are those of
// the commands that it left running.
func (s *Supervisor) listen(out io.Reader, i, pid int, one *floor) (report Report, groups map[int]bool, told, err error) {
	ended := false
	groups = make(map[int]bool)
	dec := json.NewDecoder(out)
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) && ended {
				err = nil
			}
			return report, groups, told, err
		}
		one.Lock()
		switch {
		case m.Ended:
			if ended = true; m.Error != "" {
				told = &toldError{m.Error, m.Errno}
			}
		case m.Event != nil:
			report.count(m.Event)
			one.streak.count(m.Event)
			if s.OnEvent != nil {
				s.OnEvent(i, *m.Event)
			}
		case m.Group != 0:
			groups[m.Group] = true
		case m.Gone != 0:
			delete(groups, m.Gone)
		case m.Worker != 0 && s.OnStart != nil:
			s.OnStart(i, pid, m.Worker)
		}
		one.Unlock()
	}
}
