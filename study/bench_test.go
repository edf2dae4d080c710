package study

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// history is a study of n trials with ten operations each, as encoded lines.
func history(tb testing.TB, trials int) [][]byte {
	tb.Helper()
	var ops [][]byte
	add := func(op Op) {
		b, err := AppendOp(nil, op)
		if err != nil {
			tb.Fatal(err)
		}
		ops = append(ops, b)
	}
	add(&CreateStudy{Config: Config{Name: "bench", Directions: []Direction{Minimize}}})
	params := []Param{
		{Name: "lr", Dist: FloatDist{Low: 1e-5, High: 0.1, Log: true}, Value: F64(0.001)},
		{Name: "layers", Dist: IntDist{Low: 1, High: 8, Step: 1}, Value: I64(4)},
	}
	for i := range trials {
		id := TrialID(i)
		add(&CreateTrial{Trial: id, Number: uint64(i)})
		add(&Transition{Trial: id, From: Waiting, To: Running})
		add(&ParamsBatch{Trial: id, Params: params})
		for step := range uint64(5) {
			add(&Report{Trial: id, Step: step, Values: []float64{1 / float64(uint64(i)+step+1)}})
		}
		add(&SetValues{Trial: id, Values: []float64{1 / float64(i+1)}})
		add(&Transition{Trial: id, From: Running, To: Complete})
	}
	return ops
}

// managedHistory is what `study run` leaves of n trials: fourteen operations each, with
// the run and the log of each trial, and its outbox driven to its end.
func managedHistory(tb testing.TB, trials int) (ops [][]byte) {
	tb.Helper()
	f := NewFold()
	update := func(fn func(tx *Tx) error) {
		d := f.Draft()
		log := &replicaLog{memoryLog: memoryLog{opts: &MemoryOptions{Worker: 1 << 52, MaxOpBytes: DefaultMaxOpBytes}, at: 1_700_000_000_000, seq: d.Seq}}
		tx := &Tx{draft: d, log: log}
		if err := errors.Join(tx.end(fn(tx)), d.Commit()); err != nil {
			tb.Fatal(err)
		}
		ops = append(ops, log.ops...)
	}
	update(func(tx *Tx) error {
		_, err := tx.CreateStudy(Config{Name: "bench", Directions: []Direction{Minimize}})
		return err
	})
	for i := range trials {
		update(func(tx *Tx) error { return managedTrial(tx, i) })
	}
	return ops
}

func managedTrial(tx *Tx, i int) error {
	ref, err := tx.LifecycleReserve(0, nil, 0)
	if err != nil {
		return err
	}
	fence, err := tx.LifecycleClaim(ref.ID, Claim{From: Waiting, Worker: tx.Worker(), HeartbeatMillis: tx.AtMillis(), Params: []Param{
		{Name: "lr", Dist: FloatDist{Low: 1e-5, High: 0.1, Log: true}, Value: F64(0.1 / float64(i+1+1<<20))},
		{Name: "layers", Dist: IntDist{Low: 1, High: 8, Step: 1}, Value: I64(4)},
	}})
	if err != nil {
		return err
	}
	errs := []error{
		tx.SetLease(fence, time.Minute),
		tx.LifecycleSystemAttr(fence, SystemPrefix+"log", fmt.Appendf(nil, `"bench.atj.logs/bench/%d.log"`, i)),
		tx.LifecycleSystemAttr(fence, SystemPrefix+"run", fmt.Appendf(nil, `{"slug":"bench-%d","stream":"%016x"}`, i, i)),
	}
	for step := range uint64(5) {
		errs = append(errs, tx.LifecycleFenced(fence, &MutateReport{Step: step, Values: []float64{1 / float64(uint64(i)+step+1)}}))
	}
	errs = append(errs, tx.LifecycleTerminal(fence, Completed(1/float64(i+1)), &RetryPolicy{}))
	for phase := PhaseSampler; phase <= PhaseEffects; phase++ {
		errs = append(errs, tx.OutboxAdvance(EntryKey{Trial: ref.ID, Epoch: fence.Epoch}, phase, Advance{}))
	}
	return errors.Join(errs...)
}

func replay(tb testing.TB, ops [][]byte) *Fold {
	tb.Helper()
	f := NewFold()
	var d Decoder
	for i, raw := range ops {
		op, err := d.Decode(raw)
		if err == nil {
			err = f.Apply(uint64(i+1), 1, 1, op)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return f
}

// histories are the ways in which trials are written.
var histories = []struct {
	name string
	of   func(tb testing.TB, trials int) [][]byte
}{{"raw", history}, {"managed", managedHistory}}

// BenchmarkReplay decodes and folds histories of very different lengths: what an
// operation takes must not grow with them. One iteration is one history.
func BenchmarkReplay(b *testing.B) {
	for _, h := range histories {
		for _, trials := range []int{10_000, 50_000, 200_000} {
			b.Run(fmt.Sprintf("%s/trials=%d", h.name, trials), func(b *testing.B) {
				ops := h.of(b, trials)
				perOperation(b, len(ops), func() { replay(b, ops) })
			})
		}
	}
}

// perOperation runs f, which works on n operations, and reports what each takes.
func perOperation(b *testing.B, n int, f func()) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	rounds := 0
	for b.Loop() {
		f()
		rounds++
	}
	runtime.ReadMemStats(&after)
	total := float64(n) * float64(rounds)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/total, "ns/operation")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/total, "allocs/operation")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/total, "B/operation")
}

// BenchmarkMemory reports what the state of a million operations takes.
func BenchmarkMemory(b *testing.B) {
	ops := history(b, 100_000)
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f := replay(b, ops)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		runtime.KeepAlive(f)
	}
	runtime.KeepAlive(ops)
}

func BenchmarkDecode(b *testing.B) {
	for _, op := range []Op{
		&Report{Trial: 99999, Step: 17, Values: []float64{0.123456789}},
		&Transition{Trial: 99999, From: Waiting, To: Running},
		&LifecycleRenew{Trial: 99999, Worker: 1 << 52, Epoch: 1, HeartbeatMillis: 1700000000000, HeartbeatSeq: 17},
		&LifecycleFenced{Trial: 99999, Worker: 1 << 52, Epoch: 1, Mutation: &MutateReport{Step: 17, Values: []float64{0.123456789}}},
	} {
		b.Run(op.Kind(), func(b *testing.B) {
			raw, err := AppendOp(nil, op)
			if err != nil {
				b.Fatal(err)
			}
			var d Decoder
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUpdate is one transaction of a whole trial on top of n others, with
// a reader looking after each: it must be flat.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := replay(b, history(b, n))
			b.ReportAllocs()
			for b.Loop() {
				d := f.Draft()
				id := TrialID(d.st.trials.len())
				for _, op := range []Op{
					&CreateTrial{Trial: id, Number: uint64(id)},
					&Transition{Trial: id, From: Waiting, To: Running},
					&Report{Trial: id, Step: 1, Values: []float64{0.5}},
					&SetValues{Trial: id, Values: []float64{0.5}},
					&Transition{Trial: id, From: Running, To: Complete},
				} {
					if err := d.Apply(d.Seq()+1, 1, 1, op); err != nil {
						b.Fatal(err)
					}
				}
				if err := d.Commit(); err != nil {
					b.Fatal(err)
				}
				f.Snapshot()
			}
		})
	}
}

// BenchmarkList reads number and value of every trial.
func BenchmarkList(b *testing.B) {
	s := replay(b, history(b, 30_000)).Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		sum := 0.0
		for t := range s.Trials(0, TrialFilter{}) {
			sum += float64(t.Number) + t.Values[0]
		}
		if sum == 0 {
			b.Fatal("nothing was read")
		}
	}
}
