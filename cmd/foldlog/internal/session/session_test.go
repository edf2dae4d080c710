package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/cli"
)

func TestASessionEndsWithItsInputItsContextOrARequest(t *testing.T) {
	broken := errors.New("broken")
	endless, _ := io.Pipe()
	t.Cleanup(func() { endless.Close() })
	for _, tc := range []struct {
		name string
		in   io.Reader
		do   func(line string, stop context.CancelCauseFunc) error
		want error
		got  []string
	}{
		{"the end of the input", strings.NewReader("a\nb"), func(string, context.CancelCauseFunc) error { return nil }, nil, []string{"a", "b"}},
		{"an input that fails", io.MultiReader(strings.NewReader("a\n"), failing{broken}), func(string, context.CancelCauseFunc) error { return nil }, broken, []string{"a"}},
		{"an answer that cannot be written", strings.NewReader("a\nb\n"), func(string, context.CancelCauseFunc) error { return broken }, broken, []string{"a"}},
		{"its context", io.MultiReader(strings.NewReader("a\n"), endless), func(_ string, stop context.CancelCauseFunc) error { stop(broken); return nil }, broken, []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			var got []string
			err := Serve(ctx, tc.in, 100, func(_ context.Context, line []byte) error {
				got = append(got, string(line))
				return tc.do(string(line), stop)
			})
			if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
				t.Errorf("it ends with %v, want %v", err, tc.want)
			}
			if diff := cmp.Diff(tc.got, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// failing is an input that fails.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestASessionOutlivesSIGTERMOnly(t *testing.T) {
	other := errors.New("other")
	for _, tc := range []struct {
		cause, want error
	}{
		{&cli.SignalError{Name: "SIGTERM", Number: 15}, nil},
		{&cli.SignalError{Name: "SIGINT", Number: 2}, &cli.SignalError{Name: "SIGINT", Number: 2}},
		{other, other},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		out, stop := OutliveTermination(ctx)
		end(tc.cause)
		if tc.want != nil {
			<-out.Done()
		}
		if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(context.Cause(out))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.cause, diff)
		}
		stop()
		<-out.Done()
	}
}

func TestAProblemHasTheNameOfTheFirstKindThatMatches(t *testing.T) {
	kinds := []Kind{{"missing", cli.Is(os.ErrNotExist)}, {"any", func(error) bool { return true }}}
	err := errors.Join(fmt.Errorf("open a: %w", os.ErrNotExist), errors.New("close a"))
	want := &Problem{Kind: "missing", Message: "open a: file does not exist; close a", Hint: "check the path; foldlog ls ROOT lists the logs under a root"}
	if diff := cmp.Diff(want, Describe(err, kinds, "other")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := Describe(io.EOF, kinds[:1], "other"); p.Kind != "other" || p.Hint != "" {
		t.Errorf("%+v", p)
	}
}
