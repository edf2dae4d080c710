package runner

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/metrics"
)

func TestObjectivesFromOutput(t *testing.T) {
	metric := func(step int, name, value string) string {
		return fmt.Sprintf(`{"ts_ms":1,"step":%d,"kind":"metric","name":%q,"value":%s,"metadata":{}}`, step, name, value)
	}
	for _, c := range []struct {
		name    string
		metrics []string
		lines   []string
		reports []string
		result  string
	}{
		{"events of the stream", []string{"loss"},
			[]string{metric(1, "loss", "0.5"), metric(1, "other", "9"), metric(2, "loss", "0.25")},
			[]string{"1 [0.5]", "2 [0.25]"}, "[0.25] <nil>"},
		{"plain objects with steps", []string{"loss"},
			[]string{`{"step":3,"loss":1}`, `{"loss":0.5,"step":7}`}, []string{"3 [1]", "7 [0.5]"}, "[0.5] <nil>"},
		{"steps that are spelled as floats", []string{"loss"},
			[]string{`{"step":100.0,"loss":1}`, `{"step":2e2,"loss":2}`, `{"step":200.5,"loss":3}`, `{"step":1e30,"loss":4}`},
			[]string{"100 [1]", "200 [2]", "201 [3]", "202 [4]"}, "[4] <nil>"},
		{"steps that are no numbers", []string{"loss"},
			[]string{`{"step":"first","loss":1}`, `{"step":"second","loss":2}`}, []string{"0 [1]", "1 [2]"}, "[2] <nil>"},
		{"plain objects without steps", []string{"loss"},
			[]string{`{"loss":1}`, `{"x":2}`, `{"loss":3}`}, []string{"0 [1]", "1 [3]"}, "[3] <nil>"},
		{"nested names", []string{"val/loss"}, []string{`{"val":{"loss":2}}`}, []string{"0 [2]"}, "[2] <nil>"},
		{"several objectives of one step are one report", []string{"loss", "size"},
			[]string{metric(1, "loss", "1"), metric(1, "size", "2"), metric(2, "loss", "3"), metric(3, "loss", "4")},
			[]string{"1 [1 2]", "2 [3 NaN]", "3 [4 NaN]"}, "[4 2] <nil>"},
		{"a step that repeats is reported again", []string{"loss"},
			[]string{metric(1, "loss", "1"), metric(1, "loss", "2")}, []string{"1 [1]", "1 [2]"}, "[2] <nil>"},
		{"non-finite values", []string{"loss"},
			[]string{metric(1, "loss", `"NaN"`), metric(2, "loss", "Infinity"), `{"step":3,"loss":NaN}`},
			[]string{"1 [NaN]", "2 [+Inf]", "3 [NaN]"}, "[NaN] <nil>"},
		{"negative steps count as results only", []string{"loss"}, []string{metric(-1, "loss", "5")}, nil, "[5] <nil>"},
		{"name=value pairs with steps", []string{"loss"},
			[]string{"step=3 loss=0.5", "[epoch 1] step=4, loss=0.25, lr=1e-3"}, []string{"3 [0.5]", "4 [0.25]"}, "[0.25] <nil>"},
		{"name=value pairs without steps", []string{"loss"},
			[]string{"training with lr=3", "loss=1", "acc=9", "done, loss=2"}, []string{"0 [1]", "1 [2]"}, "[2] <nil>"},
		{"name=value pairs beside objects are text", []string{"loss"},
			[]string{`{"step":1,"loss":1}`, "step=2 loss=5", metric(3, "loss", "3"), "loss=6"}, []string{"1 [1]", "3 [3]"}, "[3] <nil>"},
		{"text and other kinds are passed over", []string{"loss"},
			[]string{"loss=low", "loss: 3", "epoch 1", `{"loss":"low"}`, `{"ts_ms":1,"kind":"done","slug":"s"}`}, nil,
			`[] the output has no value for "loss"`},
		{"one of two is missing", []string{"loss", "size"}, []string{`{"loss":1}`}, []string{"0 [1 NaN]"},
			`[] the output has no value for "size"`},
		{"other names are told", []string{"loss"},
			[]string{`{"step":1,"val_loss":1,"acc":2,"note":"x"}`, metric(2, "val_loss", "3")}, nil,
			`[] the output has no value for "loss", but for "acc", "val_loss"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newObjectives(c.metrics)
			m := metrics.NewMixed(0, func(it *metrics.Item) { o.take(it) })
			for _, l := range c.lines {
				fmt.Fprintln(m, l)
			}
			m.Close()
			var reports []string
			for _, r := range o.drain(true) {
				reports = append(reports, fmt.Sprint(r.Step, " ", r.Values))
			}
			if diff := cmp.Diff(c.reports, reports); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
			values, err := o.result()
			if got := fmt.Sprint(values, " ", err); got != c.result {
				t.Errorf("result %s, want %s", got, c.result)
			}
		})
	}
}

func TestFastCommandWaitsForTheJournal(t *testing.T) {
	o := newObjectives([]string{"loss"})
	m := metrics.NewMixed(0, func(it *metrics.Item) { o.take(it) })
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range 3 * maxPending {
			fmt.Fprintf(m, "{\"step\":%d,\"loss\":1}\n", i)
		}
	}()
	total := 0
	for total < 3*maxPending {
		<-o.news
		for got := o.drain(false); len(got) > 0; got = o.drain(false) {
			total += len(got)
		}
	}
	<-written
	if total != 3*maxPending {
		t.Errorf("%d reports, want %d", total, 3*maxPending)
	}
}
