// Package digits trains a small neural network on real handwritten digits. It
// is the work that the examples and the demonstration of Foldlog tune: one
// trial takes a second or two on one core, good parameters recognise more than
// 95 % of the digits they were not trained on, and bad ones clearly less.
//
// The data is in the binary (see data/README.md for where it is from). The
// same Params give the same numbers on the same machine.
package digits

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
)

const (
	// Pixels is the number of values in an image of 8 by 8.
	Pixels = 64
	// Classes is the number of digits.
	Classes = 10

	brightest = 16 // of a pixel in the file
	trainPart = 80 // percent of the rows that are trained on
	splitSeed = 1
)

//go:embed data/digits.csv.gz
var compressed []byte

// Sample is one image and the digit it shows.
type Sample struct {
	Image [Pixels]float64 // rows from the top, each pixel from 0 to 1
	Label int             // 0 to 9
}

// Data is the digits, split into those to train on and those to judge by. The
// split is always the same, so that trials can be compared.
type Data struct {
	Train, Validation []Sample
}

// Load reads the embedded data: 1,437 samples to train on and 360 for
// validation. It fails only if the embedded file is damaged.
func Load() (Data, error) {
	samples, err := read(bytes.NewReader(compressed))
	if err != nil {
		return Data{}, fmt.Errorf("read digits: %w", err)
	}
	rng := rand.New(rand.NewPCG(splitSeed, 0))
	rng.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	cut := len(samples) * trainPart / 100
	return Data{Train: samples[:cut:cut], Validation: samples[cut:]}, nil
}

func read(r io.Reader) ([]Sample, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	rows := csv.NewReader(unzipped)
	rows.FieldsPerRecord = Pixels + 1
	rows.ReuseRecord = true
	var samples []Sample
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		s, err := parse(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", len(samples)+1, err)
		}
		samples = append(samples, s)
	}
}

func parse(row []string) (s Sample, err error) {
	for i := range s.Image {
		v, err := number(row[i], brightest)
		if err != nil {
			return s, fmt.Errorf("pixel %d: %w", i, err)
		}
		s.Image[i] = float64(v) / brightest
	}
	if s.Label, err = number(row[Pixels], Classes-1); err != nil {
		return s, fmt.Errorf("class: %w", err)
	}
	return s, nil
}

func number(field string, highest int) (int, error) {
	v, err := strconv.Atoi(field)
	if err == nil && (v < 0 || v > highest) {
		err = fmt.Errorf("%d is not from 0 to %d", v, highest)
	}
	return v, err
}
