package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/s3test"
)

// backend makes empty stores of one kind, and says how another process opens one.
type backend struct {
	open func(t *testing.T) (s Store, spec string)
}

func backends(t *testing.T) map[string]backend {
	t.Helper()
	kinds := map[string]backend{
		"memory": {func(*testing.T) (Store, string) { return NewMemory(), "" }},
		"fault":  {func(*testing.T) (Store, string) { return NewFault(NewMemory(), pass), "" }},
		"local": {func(t *testing.T) (Store, string) {
			dir := t.TempDir()
			return openLocal(t, dir), "local " + dir
		}},
	}
	if s3test.Running(t) {
		kinds["s3"] = backend{func(t *testing.T) (Store, string) {
			opts := s3Bucket(t)
			return openS3(t, opts), "s3 " + opts.Endpoint + " " + opts.Bucket
		}}
	}
	return kinds
}

func pass(Call) Fate { return Fate{} }

func openLocal(t *testing.T, dir string) Store {
	t.Helper()
	s, err := OpenLocal(dir, LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func forEach(t *testing.T, test func(t *testing.T, s Store)) {
	for name, b := range backends(t) {
		t.Run(name, func(t *testing.T) {
			s, _ := b.open(t)
			t.Run("whole", func(t *testing.T) { test(t, s) })
			t.Run("below a prefix", func(t *testing.T) { test(t, Prefix(s, "some/dir")) })
		})
	}
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestObjectsAreReadAsWritten(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		for _, data := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("0123456789"), 100_000)} {
			ok(t, s.Put(ctx, "a/b.bin", data))
			got, err := s.Get(ctx, "a/b.bin", int64(len(data)))
			ok(t, err)
			if !bytes.Equal(got, data) {
				t.Fatalf("read %d bytes, wrote %d", len(got), len(data))
			}
			info, err := s.Stat(ctx, "a/b.bin")
			ok(t, err)
			if info.Size != int64(len(data)) || info.Key != "a/b.bin" || time.Since(info.Modified) > time.Hour {
				t.Errorf("stat says %+v", info)
			}
		}
		_, err := s.Get(ctx, "a/b.bin", 999_999)
		want(t, err, ErrTooLarge)
		got, err := s.GetRange(ctx, "a/b.bin", 15, 10)
		ok(t, err)
		if string(got) != "5678901234" {
			t.Errorf("range is %q", got)
		}
		for _, r := range [][2]int64{{999_995, 6}, {0, 1_000_001}, {0, 1 << 50}, {2_000_000, 1}, {1_000_001, 0}, {-1, 2}, {1, -1}} {
			_, err := s.GetRange(ctx, "a/b.bin", r[0], r[1])
			if err == nil && r[1] == 0 {
				continue // a store may not look for nothing
			}
			want(t, err, io.ErrUnexpectedEOF)
		}
	})
}

func TestMissingObjectsAreNamed(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		ok(t, s.Put(ctx, "dir/there", nil))
		for _, key := range []string{"no", "dir/no", "no/there", "dir"} {
			_, err := s.Get(ctx, key, 10)
			want(t, err, ErrNotFound)
			_, err = s.GetRange(ctx, key, 0, 10)
			want(t, err, ErrNotFound)
			_, err = s.Stat(ctx, key)
			want(t, err, ErrNotFound)
			var e *Error
			if !errors.As(err, &e) || !strings.HasSuffix(e.Key, key) {
				t.Errorf("error %v does not name %s", err, key)
			}
		}
		ok(t, s.Delete(ctx, "no"))
		ok(t, s.Delete(ctx, "dir/there"))
		_, err := s.Get(ctx, "dir/there", 10)
		want(t, err, ErrNotFound)
	})
}

func TestKeysThatNotEveryStoreHoldsAreRefused(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		for _, key := range []string{"", "/a", "a/", "a//b", "../a", "a/./b", "a\\b", "c:d", "a\nb", ".tmp-1", "a/.tmp-2", strings.Repeat("k", 1001)} {
			want(t, s.Put(t.Context(), key, nil), ErrKey)
			want(t, s.PutIfAbsent(t.Context(), key, nil), ErrKey)
			_, err := s.Create(t.Context(), key)
			want(t, err, ErrKey)
		}
	})
}

func list(t *testing.T, s Store, opts ListOptions) []string {
	t.Helper()
	keys := []string{}
	for info, err := range s.List(t.Context(), opts) {
		ok(t, err)
		keys = append(keys, info.Key)
	}
	return keys
}

func TestListingIsInKeyOrder(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		for _, key := range []string{"a/x", "a-b", "a/b/c", "a/b/d", "ab", "b", "a.b", "a/b.c"} {
			ok(t, s.Put(t.Context(), key, []byte(key)))
		}
		for _, c := range []struct {
			opts ListOptions
			want []string
		}{
			{ListOptions{}, []string{"a-b", "a.b", "a/b.c", "a/b/c", "a/b/d", "a/x", "ab", "b"}},
			{ListOptions{Prefix: "a/"}, []string{"a/b.c", "a/b/c", "a/b/d", "a/x"}},
			{ListOptions{Prefix: "a/b"}, []string{"a/b.c", "a/b/c", "a/b/d"}},
			{ListOptions{Prefix: "a/b/d"}, []string{"a/b/d"}},
			{ListOptions{Prefix: "a/b/d/"}, []string{}},
			{ListOptions{Delimiter: true}, []string{"a-b", "a.b", "a/", "ab", "b"}},
			{ListOptions{Prefix: "a/", Delimiter: true}, []string{"a/b.c", "a/b/", "a/x"}},
			{ListOptions{Prefix: "a/", Delimiter: true, StartAfter: "a/b/"}, []string{"a/x"}},
			{ListOptions{StartAfter: "a/b/c"}, []string{"a/b/d", "a/x", "ab", "b"}},
			{ListOptions{Prefix: "zz"}, []string{}},
		} {
			if d := cmp.Diff(c.want, list(t, s, c.opts)); d != "" {
				t.Errorf("%+v: %s", c.opts, d)
			}
		}
	})
}

func TestListingOutgrowsAPage(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		var keys []string
		for i := range 1100 {
			keys = append(keys, fmt.Sprintf("d/%04d", i))
		}
		var wg sync.WaitGroup
		for part := range 8 {
			wg.Go(func() {
				for i := part; i < len(keys); i += 8 {
					if err := s.Put(t.Context(), keys[i], nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if d := cmp.Diff(keys, list(t, s, ListOptions{Prefix: "d/"})); d != "" {
			t.Error(d)
		}
		n := 0
		for range s.List(t.Context(), ListOptions{}) {
			if n++; n == 3 {
				break
			}
		}
		if n != 3 {
			t.Errorf("listing gave %d keys to one who wanted 3", n)
		}
	})
}

func TestPutIfAbsentIsWonOnce(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		ok(t, s.PutIfAbsent(ctx, "k", []byte("one")))
		want(t, s.PutIfAbsent(ctx, "k", []byte("two")), ErrExists)
		want(t, s.PutIfAbsent(ctx, "k", []byte("longer than one")), ErrExists)
		ok(t, s.PutIfAbsent(ctx, "k", []byte("one"))) // our own bytes: we won
		got, err := s.Get(ctx, "k", 10)
		ok(t, err)
		if string(got) != "one" {
			t.Errorf("holds %q", got)
		}
		for round := range 20 {
			key := fmt.Sprintf("race/%d", round)
			var mu sync.Mutex
			var winners []string
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					mine := fmt.Sprintf("writer %d", i)
					err := s.PutIfAbsent(ctx, key, []byte(mine))
					if err == nil {
						mu.Lock()
						winners = append(winners, mine)
						mu.Unlock()
					} else if !errors.Is(err, ErrExists) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			got, err := s.Get(ctx, key, 100)
			ok(t, err)
			if d := cmp.Diff([]string{string(got)}, winners); d != "" {
				t.Errorf("winner and content differ: %s", d)
			}
		}
	})
}

func TestLargeObjectsAppearOnClose(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		data := bytes.Repeat([]byte("abcdefgh"), 12<<20/8)
		w, err := s.Create(ctx, "big")
		ok(t, err)
		for b := data; len(b) > 0; {
			n := min(len(b), 1_000_003)
			if _, err := w.Write(b[:n]); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		_, err = s.Stat(ctx, "big")
		want(t, err, ErrNotFound)
		ok(t, w.Close())
		ok(t, w.Abort())
		got, err := s.Get(ctx, "big", int64(len(data)))
		ok(t, err)
		if !bytes.Equal(got, data) {
			t.Error("content differs")
		}
		w, err = s.Create(ctx, "given-up")
		ok(t, err)
		_, err = w.Write(data)
		ok(t, err)
		ok(t, w.Abort())
		if _, err := w.Write(data); err == nil {
			t.Error("a writer that was given up still writes")
		}
		if d := cmp.Diff([]string{"big"}, list(t, s, ListOptions{})); d != "" {
			t.Error(d)
		}
	})
}

func TestACancelledContextStopsACall(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		want(t, s.Put(ctx, "k", nil), context.Canceled)
		_, err := s.Get(ctx, "k", 1)
		want(t, err, context.Canceled)
	})
}

// TestMain lets the test binary be one of several processes that race.
func TestMain(m *testing.M) {
	proctest.Role("OBJSTORE_RACER", race)
	proctest.Alone()
	code := m.Run()
	s3test.Stop()
	os.Exit(code)
}

const racedKeys = 40

// race counts the keys that this process wins.
func race(spec string) error {
	var s Store
	var err error
	switch kind, where, _ := strings.Cut(spec, " "); kind {
	case "local":
		s, err = OpenLocal(where, LocalOptions{})
	case "s3":
		endpoint, bucket, _ := strings.Cut(where, " ")
		s, err = OpenS3(S3Options{Endpoint: endpoint, Bucket: bucket, Region: "us-east-1", AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey})
	}
	if err != nil {
		return err
	}
	won := 0
	for i := range racedKeys {
		err := s.PutIfAbsent(context.Background(), fmt.Sprintf("raced/%02d", i), []byte(strconv.Itoa(os.Getpid())))
		if err == nil {
			won++
		} else if !errors.Is(err, ErrExists) {
			return err
		}
	}
	fmt.Println(won)
	return nil
}

func TestProcessesRacingWinEachKeyOnce(t *testing.T) {
	for name, b := range backends(t) {
		t.Run(name, func(t *testing.T) {
			_, spec := b.open(t)
			if spec == "" {
				return // one process only
			}
			outputs := make([]string, 4)
			var wg sync.WaitGroup
			for i := range outputs {
				wg.Go(func() {
					out, err := proctest.Self(t.Context(), "OBJSTORE_RACER="+spec).CombinedOutput()
					if err != nil {
						t.Errorf("%v: %s", err, out)
					}
					outputs[i] = strings.TrimSpace(string(out))
				})
			}
			wg.Wait()
			total := 0
			for _, out := range outputs {
				n, err := strconv.Atoi(out)
				ok(t, err)
				total += n
			}
			if total != racedKeys {
				t.Errorf("%d keys were won %d times: %v", racedKeys, total, outputs)
			}
		})
	}
}
