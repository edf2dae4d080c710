package study

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// DefaultMaxOpBytes is the largest operation that a storage takes, in bytes.
const DefaultMaxOpBytes = 16 << 20

// MemoryOptions configures [NewMemory]. The zero value is the default.
type MemoryOptions struct {
	// Clock gives the wall time of operations; nil is time.Now.
	Clock func() time.Time
	// Worker is the id that operations carry.
	Worker uint64
	// MaxOpBytes caps one operation; 0 is [DefaultMaxOpBytes].
	MaxOpBytes int
}

// Memory is a [Storage] that lives as long as the process.
type Memory struct {
	opts   MemoryOptions
	update sync.Mutex // held by the one transaction
	closed bool
	state  shared
}

var _ Storage = (*Memory)(nil)

// NewMemory returns an empty storage in memory.
func NewMemory(opts MemoryOptions) *Memory {
	m := &Memory{opts: opts, state: shared{fold: NewFold()}}
	if m.opts.Clock == nil {
		m.opts.Clock = time.Now
	}
	if m.opts.MaxOpBytes == 0 {
		m.opts.MaxOpBytes = DefaultMaxOpBytes
	}
	return m
}

// Update implements [Storage].
func (m *Memory) Update(ctx context.Context, fn func(tx *Tx) error) error {
	m.update.Lock()
	defer m.update.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	draft := m.state.draft()
	log := &memoryLog{opts: &m.opts, at: uint64(max(0, m.opts.Clock().UnixMilli())), seq: draft.Seq}
	tx := &Tx{draft: draft, log: log}
	if err := tx.end(fn(tx)); err != nil {
		return err
	}
	return m.state.change(func(*Fold) error { return draft.Commit() })
}

func (m *Memory) usable(ctx context.Context) error {
	if m.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// Snapshot implements [Storage].
func (m *Memory) Snapshot() *Snapshot { return m.state.snapshot() }

// Refresh implements [Storage]; there is nobody else.
func (m *Memory) Refresh(ctx context.Context) error {
	m.update.Lock()
	defer m.update.Unlock()
	return m.usable(ctx)
}

// Worker implements [Storage].
func (m *Memory) Worker() uint64 { return m.opts.Worker }

// Close implements [Storage].
func (m *Memory) Close() error {
	m.update.Lock()
	defer m.update.Unlock()
	m.closed = true
	return nil
}

// memoryLog numbers the operations of a transaction and drops them.
type memoryLog struct {
	opts *MemoryOptions
	at   uint64
	seq  func() uint64
}

func (l *memoryLog) NextSeq() uint64  { return l.seq() + 1 }
func (l *memoryLog) AtMillis() uint64 { return l.at }
func (l *memoryLog) Worker() uint64   { return l.opts.Worker }

func (l *memoryLog) Append(op []byte) error {
	if len(op) > l.opts.MaxOpBytes {
		return fmt.Errorf("%w: operation of %d bytes over %d", ErrTooLarge, len(op), l.opts.MaxOpBytes)
	}
	return nil
}
