package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// logAttr is the trial's attribute with the path of its log, as [prepared.portable]
// spells it.
const logAttr = "foldlog:log"

// logFile keeps the end of what is written to it: two files of half the cap
// each, the older one under the name NAME.1. A file that takes nothing, as on a
// full disk, never stops the writer; the first reason is kept. It is safe for
// concurrent use.
type logFile struct {
	path string
	half int64

	mu   sync.Mutex
	f    *os.File
	size int64
	err  error
}

// TrialLog is where a trial's output is kept, relative to the journal's directory
// or absolute; "" if that is not known.
func TrialLog(t *study.Trial) string {
	a, ok := t.Attr(logAttr)
	if !ok || len(a.Value) == 0 || a.Value[0] != '"' {
		return ""
	}
	return serde.Text(a.Value)
}

// logPath is where the log of a trial is.
func (p *prepared) logPath(number uint64) string {
	return filepath.Join(p.Logs, p.folder(), strconv.FormatUint(number, 10)+".log")
}

func newLogFile(path string, limit int64) *logFile {
	return &logFile{path: path, half: max(limit/2, 1)}
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		n, err := l.some(rest)
		if err != nil {
			if l.err == nil {
				l.err = err
			}
			break
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// some writes what the present file has room for.
func (l *logFile) some(p []byte) (int, error) {
	if l.f != nil && l.size >= l.half {
		err := errors.Join(l.f.Close(), os.Rename(l.path, l.path+".1"))
		l.f = nil
		if err != nil {
			return 0, err
		}
	}
	if l.f == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
		if l.size >= l.half {
			return 0, nil // one that was left full: it is moved aside first
		}
	}
	n, err := l.f.Write(p[:min(int64(len(p)), l.half-l.size)])
	l.size += int64(n)
	return n, err
}

func (l *logFile) open() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.f, l.size = f, info.Size()
	return nil
}

// close tells why something is missing.
func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		if err := l.f.Close(); l.err == nil {
			l.err = err
		}
		l.f = nil
	}
	return l.err
}
