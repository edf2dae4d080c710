package runner

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// processStat is what /proc/PID/stat says of a process.
type processStat struct {
	state           string
	parent, session int
	start           uint64 // in clock ticks since the machine was started
}

// statOf reads what there is to know of a process; not ok if it is gone.
func statOf(pid int) (s processStat, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	at := bytes.LastIndexByte(text, ')') // the name before it may hold anything
	if err != nil || at < 0 {
		return s, false
	}
	const parent, session, start = 1, 3, 19
	f := strings.Fields(string(text[at+1:]))
	if len(f) <= start {
		return s, false
	}
	s.state = f[0]
	var errs [3]error
	s.parent, errs[0] = strconv.Atoi(f[parent])
	s.session, errs[1] = strconv.Atoi(f[session])
	s.start, errs[2] = strconv.ParseUint(f[start], 10, 64)
	return s, errs == [3]error{}
}

func (s *processStat) dead() bool { return s.state == "Z" || s.state == "X" }

// markOf names a process: its id, when it was started, and its session; "" where
// that cannot be told.
func markOf(pid int) string {
	s, ok := statOf(pid)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", pid, s.start, s.session)
}

// killLeftovers kills the processes of a journal's trials whose worker is dead, and
// counts them. One that has made a session of its own wanted to stay; those of
// another container have a worker that cannot be seen from here.
func killLeftovers(journal string) (killed int) {
	const rounds = 10 // what is killed may have started others meanwhile
	spared := ancestors()
	space, _ := os.Readlink("/proc/self/ns/pid")
	for range rounds {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return killed
		}
		n := 0
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err == nil && !spared[pid] && killLeftover(pid, journal, space) {
				n++
			}
		}
		if killed += n; n == 0 {
			break
		}
	}
	return killed
}

// ancestors are we and those that started us.
func ancestors() map[int]bool {
	all := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !all[pid]; {
		all[pid] = true
		s, _ := statOf(pid)
		pid = s.parent
	}
	return all
}

// killLeftover kills a process if it is a leftover. The handle is taken first, so
// that it cannot be another process of the same id that is killed.
func killLeftover(pid int, journal, space string) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	return isLeftover(pid, journal, space) && p.Kill() == nil
}

func isLeftover(pid int, journal, space string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || !bytes.Contains(env, []byte(workerVar)) {
		return false
	}
	if own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err != nil || own != space {
		return false
	}
	if variable(env, "FOLDLOG_JOURNAL") != journal {
		return false
	}
	mark := variable(env, workerVar)
	var worker, session int
	var start uint64
	if _, err := fmt.Sscanf(mark, "%d.%d.%d", &worker, &start, &session); err != nil {
		return false
	}
	s, ok := statOf(pid)
	if !ok || s.dead() || s.session != session {
		return false
	}
	w, alive := statOf(worker)
	return !alive || w.start != start || w.dead()
}

// variable is the value of a variable in an environment as the kernel keeps it.
func variable(env []byte, name string) string {
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}
