package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The stream protocol: POST /api/v1/runs/{slug}/streams/{id}?offset=N with raw
// lines. A stream is the raw bytes of one file, its length the cursor. N at
// the end appends whole lines; N before it compares the overlap and skips it;
// other bytes, or a gap, are answered with 409 and the expected offset.

// Ack is the server's answer to an append.
type Ack struct {
	Run    string `json:"run"`    // id of the run: its slug
	Stream string `json:"stream"` // id of the stream
	Offset int64  `json:"offset"` // bytes that the server now has
	Page   string `json:"page"`   // where people see the run
}

// ConflictError is the 409 of the protocol: the server has other bytes, or not
// enough.
type ConflictError struct {
	// Expected is the length of the stream at the server, in bytes.
	Expected int64 `json:"expected"`
	// Detail is what the server says.
	Detail string `json:"detail"`
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: the server expects offset %d: %s", ErrConflict, e.Expected, e.Detail)
}

// Unwrap returns [ErrConflict].
func (e *ConflictError) Unwrap() error { return ErrConflict }

// StatusError is an answer other than success and 409.
type StatusError struct {
	Status     int
	Detail     string
	RetryAfter time.Duration // 0 if the server did not say
	Err        error         // the sentinel
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%v: %d %s: %s", e.Err, e.Status, http.StatusText(e.Status), e.Detail)
}

// Unwrap returns [ErrAway], [ErrUnauthorized] or [ErrRefused].
func (e *StatusError) Unwrap() error { return e.Err }

// Client speaks the stream protocol with one server. It is safe for concurrent
// use.
type Client struct {
	// Base is the root of the server, http(s)://HOST.
	Base string
	// Token is sent as the bearer token, if not empty.
	Token string
	// HTTP sends the requests; nil is http.DefaultClient.
	HTTP *http.Client
	// Progress, if not nil, gets during Push how many bytes of the file the server
	// has, and how many bytes its whole lines take.
	Progress func(done, total int64)
}

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// Append posts whole lines at an offset of a stream; no bytes ask for nothing
// but the comparison of offsets. Errors: [ConflictError], [StatusError], or
// [ErrAway] around what the network said or half an answer; after ErrAway the
// lines may have arrived, and posting them again does no harm.
func (c *Client) Append(ctx context.Context, slug, id string, offset int64, lines []byte) (Ack, error) {
	at := c.Base + "/api/v1/runs/" + url.PathEscape(slug) + "/streams/" + id + "?offset=" + strconv.FormatInt(offset, 10)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(lines))
	if err != nil {
		return Ack{}, fmt.Errorf("post lines: %w: %w", ErrRefused, err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := c.client().Do(req)
	if err != nil {
		return Ack{}, fmt.Errorf("post lines: %w: %w", ErrAway, withoutURL(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return Ack{}, fmt.Errorf("read answer: %w: %w", ErrAway, err)
	}
	return readAnswer(resp, body)
}

func (c *Client) client() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return http.DefaultClient
}

// withoutURL leaves out the address that net/http repeats.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func readAnswer(resp *http.Response, body []byte) (Ack, error) {
	status := resp.StatusCode
	if status/100 == 2 {
		var ack Ack
		if err := json.Unmarshal(body, &ack); err != nil {
			return Ack{}, fmt.Errorf("read answer: %w: %w", ErrAway, err)
		}
		return ack, nil
	}
	if status == http.StatusConflict {
		conflict := &ConflictError{Expected: -1}
		if err := json.Unmarshal(body, conflict); err != nil || conflict.Expected < 0 {
			return Ack{}, fmt.Errorf("read answer: %w: 409 without an expected offset", ErrRefused)
		}
		return Ack{}, conflict
	}
	e := &StatusError{Status: status, Detail: detail(body), RetryAfter: retryAfter(resp), Err: ErrRefused}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Err = ErrUnauthorized
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		e.Err = ErrAway
	}
	return Ack{}, e
}

// detail is the detail of a problem document, or the beginning of the body.
func detail(body []byte) string {
	var problem struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(body, &problem) == nil && problem.Title+problem.Detail != "" {
		return orElse(problem.Detail, problem.Title)
	}
	return mend(string(bytes.TrimSpace(body[:min(len(body), 200)])))
}

func retryAfter(resp *http.Response) time.Duration {
	s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(s)*time.Second, time.Minute)
}
