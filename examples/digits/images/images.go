// Package images is the pipeline of the demonstration: it makes new images of
// handwritten digits from real ones, with a network that says which it takes them for.
package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"image"
	"image/png"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/examples/digits"
)

const (
	// Pipeline and Experiment name the datagen log.
	Pipeline, Experiment = "digits", "demo"
	// Sources is how many real images are taken, Variants how many new ones are
	// made of each.
	Sources, Variants = 16, 3

	rounds = 4   // of perturbing at most
	sure   = 0.8 // how likely the wanted digit must be
	// lease is short, so that a second process soon takes over from a first.
	lease = 2 * time.Second
)

// Make runs the pipeline on the log under root to its end, from where it was. It
// tells each step, as ITEM STEP, when it has begun and once it is durable. An item
// that fails is an error.
func Make(ctx context.Context, root string, net *digits.Classifier, told func(kind pipeline.EventKind, step string)) (err error) {
	data, err := digits.Load()
	if err != nil {
		return err
	}
	store, err := datagen.OpenRoot(root)
	if err != nil {
		return err
	}
	l, err := datagen.OpenOrCreate(ctx, store, Pipeline, Experiment, datagen.Options{LeaseTerm: lease})
	if err != nil {
		return err
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx))) }()
	report, err := pipeline.Run(ctx, pipeline.OnLog(l, w), steps(net), items(data), pipeline.Options{Workers: 4, OnEvent: func(e pipeline.Event) {
		if e.Kind == pipeline.Started || e.Kind == pipeline.Done {
			told(e.Kind, e.Item+" "+e.Step.Instance)
		}
	}})
	if err == nil && report.Failed+report.Refused > 0 {
		err = fmt.Errorf("%d items failed", report.Failed+report.Refused)
	}
	return err
}

// items are real images, as blobs.
func items(data digits.Data) iter.Seq2[pipeline.Source, error] {
	return func(yield func(pipeline.Source, error) bool) {
		for i := range Sources {
			s := &data.Validation[i]
			source := pipeline.Source{Key: fmt.Sprintf("digit-%02d", i), Fields: func() ([]datagen.Change, error) {
				return []datagen.Change{
					datagen.Set("wanted", datagen.IntValue(int64(s.Label))), datagen.Set("image", datagen.BlobValue(encode(&s.Image))),
				}, nil
			}}
			if !yield(source, nil) {
				return
			}
		}
	}
}

// steps makes variants of an image: each is perturbed until the network is sure
// of it, at most so often, and kept if it shows the digit that it should.
func steps(net *digits.Classifier) *pipeline.Pipeline {
	return &pipeline.Pipeline{Steps: []pipeline.Node{
		&pipeline.Map{Name: "variants", Over: parts, Steps: []pipeline.Node{
			&pipeline.Loop{Name: "refine", Max: rounds, Until: isSure, Steps: []pipeline.Node{
				&pipeline.Step{Name: "perturb", Run: perturb},
				&pipeline.Step{Name: "classify", Run: func(ctx context.Context, c *pipeline.Call) error {
					image, err := decode(ctx, &c.State, "variant")
					if err != nil {
						return err
					}
					label, likely := net.Classify(&image)
					c.Set("label", datagen.IntValue(int64(label)))
					c.Set("likely", datagen.FloatValue(likely))
					return nil
				}},
			}},
			&pipeline.Filter{Name: "keep", Keep: isSure},
		}, Reduce: func(_ context.Context, c *pipeline.Call, subs []*datagen.Item) error {
			kept := int64(0)
			for _, s := range subs {
				if s.Status == datagen.StatusCompleted {
					kept++
				}
			}
			c.Set("kept", datagen.IntValue(kept))
			return nil
		}},
		&pipeline.Filter{Name: "any", Keep: func(s *pipeline.State) (bool, error) { kept, err := s.Int("kept"); return kept > 0, err }},
	}}
}

func parts(ctx context.Context, s *pipeline.State) ([]pipeline.Part, error) {
	image, err := s.Blob(ctx, "image")
	if err != nil {
		return nil, err
	}
	wanted, err := s.Int("wanted")
	if err != nil {
		return nil, err
	}
	list := make([]pipeline.Part, Variants)
	for i := range list {
		list[i].Fields = []datagen.Change{datagen.Set("wanted", datagen.IntValue(wanted)), datagen.Set("variant", datagen.BlobValue(image))}
	}
	return list, nil
}

// isSure tells whether the network takes an image for the digit that it is made
// from.
func isSure(s *pipeline.State) (bool, error) {
	wanted, err := s.Int("wanted")
	if err != nil {
		return false, err
	}
	label, err := s.Int("label")
	if err != nil {
		return false, err
	}
	likely, err := s.Float("likely")
	return label == wanted && likely >= sure, err
}

// perturb shifts the image and adds noise. The same execution does the same
// thing each time.
func perturb(ctx context.Context, c *pipeline.Call) error {
	image, err := decode(ctx, &c.State, "variant")
	if err != nil {
		return err
	}
	seed := fnv.New64a()
	fmt.Fprint(seed, c.Item.ID, c.Step.Instance)
	rng := rand.New(rand.NewPCG(seed.Sum64(), 0))
	dx, dy := rng.IntN(3)-1, rng.IntN(3)-1
	var moved [digits.Pixels]float64
	for i := range moved {
		x, y := i%8-dx, i/8-dy
		if x >= 0 && x < 8 && y >= 0 && y < 8 {
			moved[i] = image[y*8+x]
		}
		moved[i] = min(1, max(0, moved[i]+rng.NormFloat64()*0.15))
	}
	c.Set("variant", datagen.BlobValue(encode(&moved)))
	return nil
}

// side is how many pixels an image has on each side.
const side = 8

// encode are an image as a blob: a PNG, which the dashboard shows.
func encode(pixels *[digits.Pixels]float64) []byte {
	img := image.NewGray(image.Rect(0, 0, side, side))
	for i, v := range pixels {
		img.Pix[i] = byte(v*255 + 0.5)
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a buffer takes everything
	return b.Bytes()
}

func decode(ctx context.Context, s *pipeline.State, field string) (pixels [digits.Pixels]float64, err error) {
	b, err := s.Blob(ctx, field)
	if err != nil {
		return pixels, err
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return pixels, fmt.Errorf("read field %q: %w", field, err)
	}
	gray, ok := img.(*image.Gray)
	if !ok || len(gray.Pix) != len(pixels) {
		return pixels, fmt.Errorf("read field %q: no image of %d gray pixels", field, len(pixels))
	}
	for i := range pixels {
		pixels[i] = float64(gray.Pix[i]) / 255
	}
	return pixels, nil
}
