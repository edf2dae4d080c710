package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// TargetKind is where a target leads.
type TargetKind uint8

// The targets of the document.
const (
	TargetJSONL  TargetKind = iota + 1 // jsonl:PATH
	TargetStdout                       // stdout
	TargetHTTP                         // http(s)://HOST, a Foldlog server
)

// Target is one place that events go to.
type Target struct {
	Kind TargetKind
	// Path is the file of a TargetJSONL, made if it is not there, appended to
	// if it is.
	Path string
	// URL is the root of a TargetHTTP's server; Token, if any, is sent as its
	// bearer token. Neither is ever in a report with a password.
	URL, Token string
	// DropNonFinite leaves metrics that are NaN or infinite out and counts
	// them, for a target that cannot take them.
	DropNonFinite bool
	// Stdout stands for os.Stdout, if not nil.
	Stdout io.Writer
	// Client sends the requests of a TargetHTTP; nil is a client of its own
	// with [DefaultRequestTimeout].
	Client *http.Client
}

// Defaults of a target.
const (
	// DefaultRequestTimeout is how long one request may take.
	DefaultRequestTimeout = 10 * time.Second
	// DefaultQueueBytes is how much waits for one target, in bytes.
	DefaultQueueBytes = 16 << 20
	// DefaultFlushEvery is how long an event waits at most before it is on its
	// way.
	DefaultFlushEvery = 100 * time.Millisecond
	// DefaultPatience is how long an event waits at most for a file or pipe
	// whose queue is full, before it is dropped. While nothing moves, later
	// events do not wait at all.
	DefaultPatience = time.Second
	// DefaultCloseTimeout is how long the end of a run waits for its targets.
	DefaultCloseTimeout = 5 * time.Second
)

// ParseTarget reads jsonl:PATH, stdout, or http(s)://HOST. Anything else is
// refused with [ErrTarget].
func ParseTarget(text string) (Target, error) {
	path, isFile := strings.CutPrefix(text, "jsonl:")
	switch {
	case isFile && path != "":
		return Target{Kind: TargetJSONL, Path: path}, nil
	case text == "stdout":
		return Target{Kind: TargetStdout}, nil
	case strings.HasPrefix(text, "http://"), strings.HasPrefix(text, "https://"):
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return Target{}, fmt.Errorf("%w: %q is not the root of a server", ErrTarget, text)
		}
		return Target{Kind: TargetHTTP, URL: strings.TrimRight(text, "/")}, nil
	}
	meant := ""
	if strings.HasSuffix(text, ".jsonl") && !strings.Contains(text, ":") {
		meant = "; the file is jsonl:" + text
	}
	return Target{}, fmt.Errorf("%w: %q; there are jsonl:PATH, stdout and http(s)://HOST%s", ErrTarget, text, meant)
}

// String spells the target as [ParseTarget] reads it, without a password.
func (t Target) String() string {
	switch t.Kind {
	case TargetJSONL:
		return "jsonl:" + t.Path
	case TargetStdout:
		return "stdout"
	}
	if u, err := url.Parse(t.URL); err == nil {
		return u.Redacted()
	}
	return "http"
}
