package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

const logsPath = "/api/v1/logs"

// ErrOld is an answer of something that does not know a call.
var ErrOld = errors.New("what answers is an older Foldlog server, or none")

// Log is a log at a server. Fields that its kind of log does not have are zero.
type Log struct {
	// Path is where it is under the server's root, Kind what the server calls it:
	// "metrics stream", "study journal", "datagen log" or "lance dataset".
	Path, Kind string
	// Bytes is the size of a stream, ModifiedMS when it was last written to.
	Bytes      int64
	ModifiedMS int64 `json:"modified_ms"`
	// Slug is that of a stream's run, Step that of its last event that has one, a metric
	// or an annotation; Stepped tells that such has come since the newest open. Points
	// is how many metrics there are.
	Slug         string
	Step, Points int64
	Stepped      bool
	// Ended tells that a stream's process has said so, Failure why it failed and
	// Signal what interrupted it, "" if it has not said that.
	Ended           bool
	Failure, Signal string
}

// Logs lists the log at a path, or those under it, "" being the root, in the order of
// paths. A path of a file in a log is answered with that log. Waiting is how many
// streams the server has still to read.
func (c *Client) Logs(ctx context.Context, under string) (logs []Log, waiting int64, err error) {
	for try := 1; ; try++ {
		logs, waiting, err = c.logs(ctx, under)
		if !errors.Is(err, errCut) || try == mostCuts || ctx.Err() != nil {
			return logs, waiting, err
		}
	}
}

func (c *Client) logs(ctx context.Context, under string) (logs []Log, waiting int64, err error) {
	resp, err := c.send(ctx, &request{method: http.MethodGet, path: logsPath, query: url.Values{"under": {under}}})
	if err != nil {
		return nil, 0, older(err)
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for {
		var line struct {
			Log
			End     bool
			Waiting int64
		}
		if err := dec.Decode(&line); err != nil {
			return nil, 0, fmt.Errorf("read list of logs: %w", cutOr(err))
		}
		if line.End {
			return logs, line.Waiting, nil
		}
		logs = append(logs, line.Log)
	}
}

// older tells the answer of a server that does not know a call.
func older(err error) error {
	var s *StatusError
	if errors.As(err, &s) && s.Status == http.StatusNotFound {
		return ErrOld
	}
	return err
}

// cutOr tells an answer that is cut from one that is no Foldlog server's.
func cutOr(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w: %w", ErrOld, err)
	}
	return fmt.Errorf("%w: %w", errCut, err)
}
