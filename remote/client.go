package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// What a server can answer that clients act on, for errors.Is. A thing that is not
// there is [fs.ErrNotExist].
var (
	// ErrUnauthorized: the token is missing, wrong, or may not do this.
	ErrUnauthorized = errors.New("not authorised by the server")
	// ErrAway: the server cannot be reached, or cannot answer now.
	ErrAway = errors.New("server is away")
	// ErrRefused: the server does not do this.
	ErrRefused = errors.New("refused by the server")
	// ErrPlain: the server does not speak TLS.
	ErrPlain = errors.New("the server does not speak TLS")
	// ErrNoHost: no machine goes by the name of the server.
	ErrNoHost = errors.New("no such server")
	// ErrAddress: a text is no address at a server.
	ErrAddress = errors.New("not an address at a server")
)

// errCut: an answer ended in the middle, so the call must be made again, from there on
// where it can go on.
var errCut = fmt.Errorf("%w: the answer is cut", ErrAway)

// mostCuts is how often in a row an answer may be cut that brought nothing.
const mostCuts = 5

// StatusError is an answer that is no success.
type StatusError struct {
	// Status is that of HTTP.
	Status int
	// Detail is what the server says.
	Detail string
	// RetryAfter is how long the server asks to wait, 0 if it does not.
	RetryAfter time.Duration
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answers %d: %s", e.Status, e.Detail)
}

// Is tells which of the sentinels the status is.
func (e *StatusError) Is(target error) bool {
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return target == ErrUnauthorized
	case e.Status == http.StatusNotFound:
		return target == fs.ErrNotExist || target == ErrRefused
	case e.Status >= 500 && e.Status != http.StatusInsufficientStorage, e.Status == http.StatusTooManyRequests, e.Status == http.StatusRequestTimeout:
		return target == ErrAway
	}
	return target == ErrRefused
}

// Client speaks with one server. It is safe for concurrent use.
type Client struct {
	// Base is the root of the server, http(s)://HOST.
	Base string
	// Token is shown to the server, if not empty.
	Token string
	// HTTP sends the requests; nil is a client with a timeout until the answer begins.
	HTTP *http.Client
	// Patience is for how long a server that is away is tried again; zero is
	// [DefaultPatience], negative not at all.
	Patience time.Duration
	// FirstPatience is that until the server has answered a first time; zero is
	// Patience, negative not at all.
	FirstPatience time.Duration
	// Waiting, if not nil, hears why a call is going to be tried again and for how long:
	// once until the server answers.
	Waiting func(err error, patience time.Duration)

	answered atomic.Bool
	silent   atomic.Bool // Waiting was told
}

const (
	// DefaultPatience is for how long a server that is away is tried again.
	DefaultPatience = 30 * time.Second
	// answerTime is how long the beginning of an answer may take.
	answerTime = 2 * time.Minute
	// maxDetail is how much of an error is read, in bytes.
	maxDetail = 64 << 10
)

var defaultHTTP = &http.Client{Transport: transport()}

func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.ResponseHeaderTimeout, t.MaxIdleConnsPerHost = answerTime, 64
	return t
}

// Parse takes an address apart: http(s)://HOST/PATH names a path under the root of a
// server, server:PATH one under that of the given server. Ok is false for what is
// neither. A server is only spoken to by its own address: a prefix is not one.
func Parse(text, server string) (base, path string, ok bool, err error) {
	if rest, short := strings.CutPrefix(text, "server:"); short {
		if server == "" {
			return "", "", true, fmt.Errorf("%w: %q needs the address of a server", ErrAddress, text)
		}
		text = strings.TrimRight(server, "/") + "/" + strings.TrimPrefix(rest, "/")
	}
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		return "", "", false, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", "", true, fmt.Errorf("%w: %q", ErrAddress, text)
	}
	return u.Scheme + "://" + u.Host, strings.Trim(u.Path, "/"), true, nil
}

// Address is the text that [Parse] takes apart as a path under the root of a server.
func Address(base, path string) string {
	return base + (&url.URL{Path: "/" + strings.Trim(path, "/")}).EscapedPath()
}

// request is one call.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         func() (io.Reader, int64) // anew for each try; nil for none
}

// send makes a call until it is answered, or the server is away for too long. The
// caller closes the body. Call what may be repeated with it.
func (c *Client) send(ctx context.Context, r *request) (*http.Response, error) {
	patience := cmp.Or(c.Patience, DefaultPatience)
	if !c.answered.Load() {
		patience = cmp.Or(c.FirstPatience, patience)
	}
	deadline := time.Now().Add(patience)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		resp, err := c.once(ctx, r)
		if err == nil || !errors.Is(err, ErrAway) || ctx.Err() != nil || !time.Now().Add(pause).Before(deadline) {
			return resp, err
		}
		if c.Waiting != nil && c.silent.CompareAndSwap(false, true) {
			c.Waiting(err, time.Until(deadline))
		}
		wait := pause/2 + rand.N(pause)
		if s := (*StatusError)(nil); errors.As(err, &s) && s.RetryAfter > 0 {
			wait = min(s.RetryAfter, time.Until(deadline))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		case <-t.C:
		}
	}
}

func (c *Client) once(ctx context.Context, r *request) (*http.Response, error) {
	at := c.Base + r.path
	if len(r.query) > 0 {
		at += "?" + r.query.Encode()
	}
	var body io.Reader
	size := int64(0)
	if r.body != nil {
		body, size = r.body()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	if req.ContentLength = size; r.body != nil && size == 0 {
		req.Body = http.NoBody
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := c.http().Do(req)
	if err != nil {
		return nil, c.unanswered(withoutURL(err))
	}
	c.answered.Store(true)
	c.silent.Store(false)
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, statusError(resp)
}

func (c *Client) http() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return defaultHTTP
}

// unanswered is [ErrAway], unless trying again cannot help.
func (c *Client) unanswered(err error) error {
	var certificate *tls.CertificateVerificationError
	var scheme tls.RecordHeaderError
	var name *net.DNSError
	switch {
	case errors.As(err, &certificate):
		return err
	case errors.As(err, &scheme), errors.Is(err, http.ErrSchemeMismatch):
		return ErrPlain
	case errors.As(err, &name) && name.IsNotFound && !c.answered.Load():
		return fmt.Errorf("%w: %w", ErrNoHost, err)
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// hopeless tells that a server will not be reached by trying again.
func hopeless(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.Is(err, ErrPlain) || errors.Is(err, ErrNoHost) || errors.As(err, &certificate)
}

// withoutURL leaves out the address that net/http repeats.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func statusError(resp *http.Response) error {
	e := &StatusError{Status: resp.StatusCode}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = min(time.Duration(s)*time.Second, time.Minute)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxDetail))
	if err != nil {
		return fmt.Errorf("%w: read answer: %w", ErrAway, err)
	}
	var p struct {
		Title, Detail string
		Errors        []struct{ Location, Message string }
	}
	if json.Unmarshal(b, &p) != nil || p.Title+p.Detail == "" {
		p.Detail = strings.ToValidUTF8(string(bytes.TrimSpace(b[:min(len(b), 200)])), "")
	}
	if e.Detail = cmp.Or(p.Detail, p.Title); e.Detail == "" {
		e.Detail = http.StatusText(resp.StatusCode)
	}
	for _, part := range p.Errors {
		e.Detail += "; " + strings.TrimPrefix(part.Location+": ", ": ") + part.Message
	}
	return e
}

// call posts JSON and reads JSON.
func (c *Client) call(ctx context.Context, path string, query url.Values, in, out any) error {
	_, err := c.post(ctx, path, query, in, out)
	return err
}

// post is call, and tells how often the request was sent. An answer that is cut is asked
// for again.
func (c *Client) post(ctx context.Context, path string, query url.Values, in, out any) (tries int, err error) {
	// Operations go as they are spelt, < and > too.
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(in); err != nil {
		return 0, err
	}
	b := text.Bytes()
	body := func() (io.Reader, int64) {
		tries++
		return bytes.NewReader(b), int64(len(b))
	}
	r := &request{method: http.MethodPost, path: path, query: query, header: http.Header{"Content-Type": {"application/json"}}, body: body}
	for cuts := 1; ; cuts++ {
		resp, err := c.send(ctx, r)
		if err != nil {
			return tries, err
		}
		err = json.NewDecoder(resp.Body).Decode(out)
		resp.Body.Close()
		if err == nil {
			return tries, nil
		}
		if cuts == mostCuts || ctx.Err() != nil {
			return tries, fmt.Errorf("%w: %w", errCut, err)
		}
	}
}
