//go:build unix

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/internal/proctest"
)

func init() {
	helpers["appender"] = helpAppend
	helpers["stopper"] = helpStop
}

// generationOp is an operation that says under which lease it was written.
func generationOp(tx *Tx, id string) []byte {
	return fmt.Appendf(nil, `{"kind":"test","id":%q,"generation":%d,"pid":%d}`, id, tx.g.w.lease.baton.generation, os.Getpid())
}

// helpAppend appends until its input ends, and says what was acknowledged:
//
//	PATH NAME TERM CLOCK-SKEW
func helpAppend(args []string) error {
	term, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	skew, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	calls := 0
	clock := func() time.Time {
		calls++
		return time.Now().Add(skew).Add(-time.Duration(calls%7) * skew / 3) // steps to and fro
	}
	w, err := OpenWriter(ctx, args[0], WriterOptions{Term: term, Clock: clock}, &nothing{})
	if err != nil {
		return err
	}
	for k := 0; ctx.Err() == nil; k++ {
		id := fmt.Sprintf("%s-%d", args[1], k)
		err := w.Do(context.Background(), func(tx *Tx) error {
			if err := tx.Append(generationOp(tx, id+"a")); err != nil {
				return err
			}
			return tx.Append(generationOp(tx, id+"b"))
		})
		if err != nil {
			return err
		}
		fmt.Println("acked", id)
	}
	return w.Close()
}

// helpStop appends once and stops itself just before the n-th call of that of a
// kind. The end of a path is marked with a $:
//
//	PATH OP PART-OF-THE-PATH N
func helpStop(args []string) error {
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	armed := false
	fsys := fsx.NewFault(fsx.OS, func(c fsx.Call) fsx.Fate {
		if armed && c.Op == args[1] && strings.Contains(c.Path+"$", args[2]) {
			if n--; n == 0 {
				resumed := make(chan os.Signal, 1)
				signal.Notify(resumed, syscall.SIGCONT)
				fmt.Println("stopping")
				syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				<-resumed // this thread may run on for a moment
			}
		}
		return fsx.Fate{}
	})
	w, err := OpenWriter(context.Background(), args[0], WriterOptions{FS: fsys, Term: 200 * time.Millisecond}, &nothing{})
	if err != nil {
		return err
	}
	armed = true
	err = w.Do(context.Background(), func(tx *Tx) error { return tx.Append(idOp("stopped")) })
	return errors.Join(err, w.Close())
}

// child is this test binary in another role.
type child struct {
	cmd   *exec.Cmd
	stdin interface{ Close() error }
	lines chan string
	done  sync.WaitGroup

	mu    sync.Mutex
	acked []string
	err   error
}

func start(t testing.TB, role string, args ...string) *child {
	t.Helper()
	return run(t, exec.Command(os.Args[0], args...), role)
}

// startAs starts an appender as another user.
func startAs(t testing.TB, binary string, uid, gid uint32, path, name string) *child {
	t.Helper()
	cmd := exec.Command(binary, path, name, "2s", "0s")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return run(t, cmd, "appender")
}

func run(t testing.TB, cmd *exec.Cmd, role string) *child {
	t.Helper()
	c := &child{cmd: cmd, lines: make(chan string, 16)}
	c.cmd.Env = append(os.Environ(), helperEnv+"="+role)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin = in
	ended, err := proctest.Start(c.cmd, c.take)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	c.done.Go(func() {
		defer close(c.lines)
		err := <-ended
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
	})
	return c
}

// take notes what was acknowledged and passes on everything else.
func (c *child) take(line string) {
	if id, ok := strings.CutPrefix(line, "acked "); ok {
		c.mu.Lock()
		c.acked = append(c.acked, id)
		c.mu.Unlock()
		return
	}
	c.lines <- line
}

func (c *child) signal(s syscall.Signal) { c.cmd.Process.Signal(s) }

// kill ends the child at once and waits until everything it said was heard.
func (c *child) kill() {
	c.signal(syscall.SIGKILL)
	c.wait()
}

func (c *child) wait() error {
	go func() {
		for range c.lines {
		}
	}()
	c.done.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// goOn lets a child that stops itself go on, and waits for its end. It is told again and
// again: where the machine is busy, it may say that it stops long before it does.
func (c *child) goOn() error {
	ended := make(chan error, 1)
	go func() { ended <- c.wait() }()
	for {
		c.signal(syscall.SIGCONT)
		select {
		case err := <-ended:
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// count is how many transactions were acknowledged so far.
func (c *child) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked)
}

// transactions are what an appender was told is durable.
func (c *child) transactions() (all [][]string) {
	for _, id := range c.acked {
		all = append(all, []string{id + "a", id + "b"})
	}
	return all
}

// next is the transaction that an appender may have had under way.
func (c *child) next(name string) []string {
	k := 0
	if n := len(c.acked); n > 0 {
		last := c.acked[n-1]
		k, _ = strconv.Atoi(last[strings.LastIndexByte(last, '-')+1:])
		k++
	}
	id := fmt.Sprintf("%s-%d", name, k)
	return []string{id + "a", id + "b"}
}
