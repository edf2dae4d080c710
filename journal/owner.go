package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	ownerPrefix  = "owner-"
	ticketPrefix = "ticket-"
	// ownerSize is the fixed length of an owner file: it is renewed in place.
	ownerSize = 512
)

// Owner says who holds a lease or waits for it. It is for people and for hints;
// no safety rests on it.
type Owner struct {
	// Host and Boot name the machine and its running kernel.
	Host string `json:"host"`
	Boot string `json:"boot,omitempty"`
	// PID is the process on that machine.
	PID int `json:"pid"`
	// Worker is the id that the owner's operations carry.
	Worker uint64 `json:"worker"`
	// TermMillis is how long the lease lasts unless renewed, as measured by
	// whoever watches it.
	TermMillis int64 `json:"term_millis"`
	// Renewed counts the renewals.
	Renewed uint64 `json:"renewed"`
}

func (o Owner) String() string {
	if o.Host == "" {
		return "a writer that did not say who it is"
	}
	return fmt.Sprintf("worker %d (process %d on %s)", o.Worker, o.PID, o.Host)
}

// self describes this process.
var self = sync.OnceValue(func() Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if len(host) > 128 {
		host = host[:128]
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return Owner{Host: strings.ToValidUTF8(host, "?"), Boot: strings.TrimSpace(string(boot)), PID: os.Getpid()}
})

// sameMachine tells whether kernel locks say something about this owner.
func (o Owner) sameMachine() bool {
	us := self()
	return o.Host == us.Host && o.Boot == us.Boot
}

func (o Owner) term() time.Duration {
	term := time.Duration(o.TermMillis) * time.Millisecond
	return min(max(term, MinTerm), MaxTerm)
}

// encode spells the owner file, padded to its fixed size.
func (o Owner) encode() ([]byte, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if len(b) >= ownerSize {
		return nil, fmt.Errorf("owner of %d bytes is too long", len(b))
	}
	b = append(b, bytes.Repeat([]byte(" "), ownerSize-1-len(b))...)
	return append(b, '\n'), nil
}

// decodeOwner reads what another process wrote, possibly while it writes, or
// before a power loss took it. Of what cannot be read nothing is known, not even
// the term.
func decodeOwner(b []byte) Owner {
	var o Owner
	if json.Unmarshal(b, &o) != nil || o.TermMillis <= 0 {
		return Owner{}
	}
	return o
}
