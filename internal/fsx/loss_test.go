package fsx

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// store writes a file, synced or not.
func store(t *testing.T, m *Mem, name, text string, sync bool) File {
	t.Helper()
	f, err := m.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err == nil {
		err = WriteFull(f, []byte(text), 0)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// content is a file's text, or what kept it from being read.
func content(m *Mem, name string) string {
	b, err := ReadFile(m, name, 1<<20)
	if err != nil {
		return kind(err)
	}
	return string(b)
}

func TestPowerLossTakesWhatWasNotSynced(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, m *Mem)
		want map[string]string
	}{
		{"a synced file under a synced name stays", func(t *testing.T, m *Mem) {
			store(t, m, "/a", "text", true)
			must(t, m.SyncDir("/"))
		}, map[string]string{"/a": "text"}},
		{"a synced file without its name is gone", func(t *testing.T, m *Mem) {
			store(t, m, "/a", "text", true)
		}, map[string]string{"/a": "not exist"}},
		{"a name without its data is an empty file", func(t *testing.T, m *Mem) {
			store(t, m, "/a", "text", false)
			must(t, m.SyncDir("/"))
		}, map[string]string{"/a": ""}},
		{"what was written after the sync is gone", func(t *testing.T, m *Mem) {
			f := store(t, m, "/a", "text", true)
			must(t, WriteFull(f, []byte("more"), 4), m.SyncDir("/"))
		}, map[string]string{"/a": "text"}},
		{"a rename that was not synced has not been", func(t *testing.T, m *Mem) {
			store(t, m, "/a", "old", true)
			store(t, m, "/b", "new", true)
			must(t, m.SyncDir("/"), m.Rename("/b", "/a"))
		}, map[string]string{"/a": "old", "/b": "new"}},
		{"a synced rename has", func(t *testing.T, m *Mem) {
			store(t, m, "/a", "old", true)
			store(t, m, "/b", "new", true)
			must(t, m.Rename("/b", "/a"), m.SyncDir("/"))
		}, map[string]string{"/a": "new", "/b": "not exist"}},
		{"a removal that was not synced has not been", func(t *testing.T, m *Mem) {
			store(t, m, "/a", "text", true)
			must(t, m.SyncDir("/"), m.Remove("/a"))
		}, map[string]string{"/a": "text"}},
		{"a directory needs its own name synced", func(t *testing.T, m *Mem) {
			must(t, m.Mkdir("/d", 0o777))
			store(t, m, "/d/a", "text", true)
			must(t, m.SyncDir("/d"))
		}, map[string]string{"/d/a": "not exist"}},
		{"and then holds what was synced in it", func(t *testing.T, m *Mem) {
			must(t, m.Mkdir("/d", 0o777))
			store(t, m, "/d/a", "text", true)
			must(t, m.SyncDir("/d"), m.SyncDir("/"))
			store(t, m, "/d/b", "text", true)
		}, map[string]string{"/d/a": "text", "/d/b": "not exist"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMem()
			tt.do(t, m)
			lost := m.PowerLoss(nil)
			for name, want := range tt.want {
				if got := content(lost, name); got != want {
					t.Errorf("%s holds %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestRandomPowerLossKeepsWhatWasSyncedAndVaries(t *testing.T) {
	m := NewMem()
	store(t, m, "/kept", "text", true)
	must(t, m.SyncDir("/"))
	f := store(t, m, "/grown", "begin", true)
	must(t, m.SyncDir("/"), WriteFull(f, []byte("+end of it"), 5))
	store(t, m, "/new", "text", true)
	seen := map[string]bool{}
	for seed := range uint64(64) {
		lost := m.PowerLoss(rand.New(rand.NewPCG(seed, 0)))
		if got := content(lost, "/kept"); got != "text" {
			t.Fatalf("seed %d: the synced file holds %q", seed, got)
		}
		grown := content(lost, "/grown")
		if len(grown) < 5 || grown[:5] != "begin" {
			t.Fatalf("seed %d: the synced beginning is %q", seed, grown)
		}
		seen["new "+content(lost, "/new")] = true
		seen[fmt.Sprintf("whole end %v", grown == "begin+end of it")] = true
	}
	for _, want := range []string{"new text", "new not exist", "whole end true", "whole end false"} {
		if !seen[want] {
			t.Errorf("no seed gave %q", want)
		}
	}
}

func TestCopiesDoNotTouchEachOther(t *testing.T) {
	m := NewMem()
	f := store(t, m, "/a", "one", true)
	must(t, m.SyncDir("/"))
	clone, lost := m.Clone(), m.PowerLoss(nil)
	must(t, WriteFull(f, []byte("two"), 0), f.Sync(), clone.Remove("/a"))
	if got := content(m, "/a") + content(clone, "/a") + content(lost, "/a"); got != "twonot existone" {
		t.Errorf("got %q", got)
	}
}
