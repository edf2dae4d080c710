package datagen

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/foldlog/foldlog/lance/memwal"
)

// holder is the text of a writer's lease: who the writer is.
type holder struct {
	// Writer is the beginning of its writer epochs: its shard.
	Writer string `json:"writer"`
	Run    string `json:"run,omitempty"`
	Host   string `json:"host"`
	PID    int    `json:"pid"`
	// Boot, Space and Start tell the process from every other on a machine of that
	// name: the running kernel, its space of process numbers, and when it started.
	// They are empty where the system does not say.
	Boot  string `json:"boot,omitempty"`
	Space string `json:"space,omitempty"`
	Start string `json:"start,omitempty"`
	// By is who took the lease from the writer, in order to seal its shard.
	By string `json:"by,omitempty"`
}

// self describes this process.
var self = sync.OnceValue(func() holder {
	h := holder{PID: os.Getpid()}
	h.Host, _ = os.Hostname()
	h.Host = strings.ToValidUTF8(h.Host, "?")
	h.Boot = readLine("/proc/sys/kernel/random/boot_id")
	h.Space, _ = os.Readlink("/proc/self/ns/pid")
	h.Start = startOf(h.PID)
	return h
})

func readLine(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

// startOf is when a process started, in the ticks of the kernel; "" if there is no
// such process or the system does not say.
func startOf(pid int) string {
	stat := readLine("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, ok := strings.Cut(stat, ") ") // the name before may have anything in it
	f := strings.Fields(rest)
	if !ok || len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return ""
	}
	return f[19]
}

// goneFromHere reports whether the holder is a process of this very machine that is
// certainly not there any more. False says nothing.
func (h *holder) goneFromHere() bool {
	us := self()
	if runtime.GOOS != "linux" || us.Start == "" || h.Start == "" {
		return false
	}
	if h.Host != us.Host || h.Boot != us.Boot || h.Space != us.Space || h.Boot == "" || h.Space == "" {
		return false
	}
	return startOf(h.PID) != h.Start
}

func (h *holder) String() string {
	if h.Host == "" {
		return "a writer that did not say who it is"
	}
	who := fmt.Sprintf("process %d on %s", h.PID, h.Host)
	if h.Run != "" {
		who += " (run " + h.Run + ")"
	}
	return who
}

func (h *holder) text() string {
	b, _ := json.Marshal(h) // strings and numbers
	return string(b)
}

// parseHolder reads the text of a lease; what is none of ours says nothing.
func parseHolder(s string) *holder {
	h := &holder{}
	if json.Unmarshal([]byte(s), h) != nil {
		return &holder{}
	}
	return h
}

// epochOf spells a writer epoch: the writer's shard, the number of its claim on the
// shard when the epoch began, and which of the items that it opened this is.
func epochOf(shard memwal.ID, claim, n uint64) string {
	return fmt.Sprintf("%s.%d.%d", shard, claim, n)
}

// shardOf finds the shard in a writer epoch; false if it is none of ours.
func shardOf(epoch string) (memwal.ID, bool) {
	parts := strings.Split(epoch, ".")
	if len(parts) != 3 {
		return memwal.ID{}, false
	}
	for _, n := range parts[1:] {
		if _, err := strconv.ParseUint(n, 10, 64); err != nil {
			return memwal.ID{}, false
		}
	}
	id, err := memwal.ParseID(parts[0])
	return id, err == nil
}
