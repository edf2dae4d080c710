package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"image"
	"image/png"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/examples/digits"
)

// The names of the demonstration's datagen log, and what its pipeline makes.
const (
	demoImagesCommand = "images"
	demoPipeline      = "digits"
	demoExperiment    = "demo"
	demoSources       = 16  // real images
	demoVariants      = 3   // new ones of each
	demoRounds        = 4   // of perturbing at most
	demoSure          = 0.8 // how likely the wanted digit must be
	// demoLease is short, so that the second process soon takes over from the first.
	demoLease = time.Second
)

// demoImagesCmd is the process that runs the pipeline. It tells each step on its
// standard output, when it begins and once it is durable.
func (a *app) demoImagesCmd() *cobra.Command {
	var root, params string
	c := &cobra.Command{
		Use: demoImagesCommand, Hidden: true, Args: operands(),
		Short: "Run the pipeline of the demonstration",
		RunE: func(c *cobra.Command, _ []string) error {
			var p struct {
				LR, Dropout           float64
				Hidden                int
				Activation, Optimizer string
			}
			if err := json.Unmarshal([]byte(params), &p); err != nil {
				return fmt.Errorf("demo images: --params: %w", err)
			}
			net, err := digits.Fit(c.Context(), digits.Params{LR: p.LR, Dropout: p.Dropout, Hidden: p.Hidden, Activation: p.Activation, Optimizer: p.Optimizer})
			if err != nil {
				return fmt.Errorf("demo images: %w", err)
			}
			return a.demoMakeImages(c.Context(), root, net)
		},
	}
	c.Flags().StringVar(&root, "root", "", "the `ROOT` of the logs")
	c.Flags().StringVar(&params, "params", "{}", "the network's parameters as `JSON`")
	return c
}

func (a *app) demoMakeImages(ctx context.Context, root string, net *digits.Classifier) (err error) {
	data, err := digits.Load()
	if err != nil {
		return err
	}
	store, err := datagen.OpenRoot(root)
	if err != nil {
		return err
	}
	l, err := datagen.OpenOrCreate(ctx, store, demoPipeline, demoExperiment, datagen.Options{LeaseTerm: demoLease})
	if err != nil {
		return err
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx))) }()
	report, err := pipeline.Run(ctx, pipeline.OnLog(l, w), demoSteps(net), demoItems(data), pipeline.Options{Workers: 4, OnEvent: func(e pipeline.Event) {
		if e.Kind == pipeline.Started || e.Kind == pipeline.Done {
			fmt.Fprintln(a.Out(), e.Kind, e.Item, e.Step.Instance)
		}
	}})
	if err == nil && report.Failed+report.Refused > 0 {
		err = fmt.Errorf("%d items failed", report.Failed+report.Refused)
	}
	return err
}

// demoItems are real images, as blobs.
func demoItems(data digits.Data) iter.Seq2[pipeline.Source, error] {
	return func(yield func(pipeline.Source, error) bool) {
		for i := range demoSources {
			s := &data.Validation[i]
			source := pipeline.Source{Key: fmt.Sprintf("digit-%02d", i), Fields: func() ([]datagen.Change, error) {
				return []datagen.Change{
					datagen.Set("wanted", datagen.IntValue(int64(s.Label))), datagen.Set("image", datagen.BlobValue(demoBytes(&s.Image))),
				}, nil
			}}
			if !yield(source, nil) {
				return
			}
		}
	}
}

// demoSteps makes variants of an image: each is perturbed until the network is sure
// of it, at most so often, and kept if it shows the digit that it should.
func demoSteps(net *digits.Classifier) *pipeline.Pipeline {
	return &pipeline.Pipeline{Steps: []pipeline.Node{
		&pipeline.Map{Name: "variants", Over: demoParts, Steps: []pipeline.Node{
			&pipeline.Loop{Name: "refine", Max: demoRounds, Until: demoIsSure, Steps: []pipeline.Node{
				&pipeline.Step{Name: "perturb", Run: demoPerturb},
				&pipeline.Step{Name: "classify", Run: func(ctx context.Context, c *pipeline.Call) error {
					image, err := demoImage(ctx, &c.State, "variant")
					if err != nil {
						return err
					}
					label, likely := net.Classify(&image)
					c.Set("label", datagen.IntValue(int64(label)))
					c.Set("likely", datagen.FloatValue(likely))
					return nil
				}},
			}},
			&pipeline.Filter{Name: "keep", Keep: demoIsSure},
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

func demoParts(ctx context.Context, s *pipeline.State) ([]pipeline.Part, error) {
	image, err := s.Blob(ctx, "image")
	if err != nil {
		return nil, err
	}
	wanted, err := s.Int("wanted")
	if err != nil {
		return nil, err
	}
	parts := make([]pipeline.Part, demoVariants)
	for i := range parts {
		parts[i].Fields = []datagen.Change{datagen.Set("wanted", datagen.IntValue(wanted)), datagen.Set("variant", datagen.BlobValue(image))}
	}
	return parts, nil
}

// demoIsSure tells whether the network takes an image for the digit that it is made
// from.
func demoIsSure(s *pipeline.State) (bool, error) {
	wanted, err := s.Int("wanted")
	if err != nil {
		return false, err
	}
	label, err := s.Int("label")
	if err != nil {
		return false, err
	}
	likely, err := s.Float("likely")
	return label == wanted && likely >= demoSure, err
}

// demoPerturb shifts the image and adds noise. The same execution does the same
// thing each time.
func demoPerturb(ctx context.Context, c *pipeline.Call) error {
	image, err := demoImage(ctx, &c.State, "variant")
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
	c.Set("variant", datagen.BlobValue(demoBytes(&moved)))
	return nil
}

// demoSide is how many pixels an image has on each side.
const demoSide = 8

// demoBytes are an image as a blob: a PNG, which the dashboard shows.
func demoBytes(pixels *[digits.Pixels]float64) []byte {
	img := image.NewGray(image.Rect(0, 0, demoSide, demoSide))
	for i, v := range pixels {
		img.Pix[i] = byte(v*255 + 0.5)
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a buffer takes everything
	return b.Bytes()
}

func demoImage(ctx context.Context, s *pipeline.State, field string) (pixels [digits.Pixels]float64, err error) {
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
