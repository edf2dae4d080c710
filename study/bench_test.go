package study

import (
	"fmt"
	"runtime"
	"testing"
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

// BenchmarkReplay decodes and folds; one iteration is one history.
func BenchmarkReplay(b *testing.B) {
	ops := history(b, 20_000)
	b.ReportAllocs()
	for b.Loop() {
		replay(b, ops)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ops)), "ns/op-line")
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
