package trial

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/foldlog/foldlog/examples/digits"
)

// stream writes the events of one run, each as one line in one write. It is
// spelled out here, with nothing but the standard library, to show that any
// program can write a metrics stream.
type stream struct {
	out    io.Writer
	now    func() time.Time
	slug   string
	broken bool // a write failed, and no further one will be tried
}

type (
	openEvent struct {
		TSMS        int64        `json:"ts_ms"`
		Kind        string       `json:"kind"`
		Slug        string       `json:"slug"`
		Description string       `json:"description"`
		Metadata    openMetadata `json:"metadata"`
	}
	openMetadata struct {
		Entry   string         `json:"entry"`
		Variant *string        `json:"variant"`
		Knobs   map[string]any `json:"knobs"`
		Run     runMetadata    `json:"run"`
		Device  string         `json:"device"`
		Devices []int          `json:"devices"`
	}
	runMetadata struct {
		Steps int    `json:"steps"` // a step is an epoch
		Seed  uint64 `json:"seed"`
	}
	metricEvent struct {
		TSMS     int64             `json:"ts_ms"`
		Step     int               `json:"step"`
		Kind     string            `json:"kind"`
		Name     string            `json:"name"`
		Value    number            `json:"value"`
		Metadata map[string]string `json:"metadata"`
	}
	annotationEvent struct {
		TSMS       int64             `json:"ts_ms"`
		Step       int               `json:"step"`
		Kind       string            `json:"kind"`
		Annotation string            `json:"annotation"`
		Metadata   map[string]string `json:"metadata"`
	}
	doneEvent struct {
		TSMS int64  `json:"ts_ms"`
		Kind string `json:"kind"`
		Slug string `json:"slug"`
	}
)

// number is a float that JSON may have no word for: a diverging run reports
// "NaN", "Infinity" and "-Infinity".
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	switch v := float64(n); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(v)
	}
}

func (s *stream) open(p digits.Params) error {
	return s.write(openEvent{
		TSMS: s.ts(), Kind: "open", Slug: s.slug,
		Description: fmt.Sprintf("digits: %d epochs of %s", p.Epochs, p.Optimizer),
		Metadata: openMetadata{
			Entry: "examples/digits/train",
			Knobs: map[string]any{
				"lr": p.LR, "momentum": max(p.Momentum, 0), "l2": p.L2, "dropout": p.Dropout,
				"hidden": p.Hidden, "layers": p.Layers, "batch": p.Batch,
				"activation": p.Activation, "optimizer": p.Optimizer,
			},
			Run:    runMetadata{Steps: p.Epochs, Seed: p.Seed},
			Device: "cpu", Devices: []int{},
		},
	})
}

func (s *stream) metrics(epoch int, m digits.Metrics) error {
	for _, v := range []struct {
		name, split string
		value       float64
	}{
		{"train/loss", "train", m.TrainLoss},
		{"train/accuracy", "train", m.TrainAccuracy},
		{"val/loss", "val", m.ValLoss},
		{"val/accuracy", "val", m.ValAccuracy},
	} {
		err := s.write(metricEvent{
			TSMS: s.ts(), Step: epoch, Kind: "metric", Name: v.name, Value: number(v.value),
			Metadata: map[string]string{"split": v.split},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) interrupted(step int, signal string) error {
	return s.annotate(step, fmt.Sprintf("interrupted by %s at step %d", signal, step), "signal", signal)
}

// failed ends the stream of a run that went wrong.
func (s *stream) failed(step int, cause error) error {
	if err := s.annotate(step, "failed: "+cause.Error(), "error", cause.Error()); err != nil {
		return err
	}
	return s.done()
}

func (s *stream) annotate(step int, text, key, value string) error {
	return s.write(annotationEvent{
		TSMS: s.ts(), Step: step, Kind: "annotation", Annotation: text, Metadata: map[string]string{key: value},
	})
}

func (s *stream) done() error {
	return s.write(doneEvent{TSMS: s.ts(), Kind: "done", Slug: s.slug})
}

func (s *stream) ts() int64 { return s.now().UnixMilli() }

func (s *stream) write(event any) error {
	line, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("spell event: %w", err)
	}
	if _, err := s.out.Write(append(line, '\n')); err != nil {
		s.broken = true
		return fmt.Errorf("write event: %w", err)
	}
	return nil
}
