package main

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

//go:embed peer.py
var peerScript string

// peerMemo changes no result of Optuna's, so that its scores do not depend on it.
//
//go:embed peer_memo.py
var peerMemo string

// peer is a process that has Optuna.
type peer struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	version string
	cache   *cache
}

func newPeer(python, cachePath string) (*peer, error) {
	p := &peer{cmd: exec.Command(python, "-c", peerMemo+peerScript)}
	p.cmd.Stderr = os.Stderr
	p.cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	var err error
	if p.cache, err = openCache(cachePath); err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.order(&p.version, "version")
}

func (p *peer) close() error {
	return errors.Join(p.in.Close(), p.cmd.Wait(), p.cache.file.Close())
}

// order sends one order and decodes the answer.
func (p *peer) order(answer any, order ...any) error {
	line, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write to Optuna: %w", err)
	}
	if line, err = p.out.ReadBytes('\n'); err != nil {
		return fmt.Errorf("read from Optuna: %w", err)
	}
	return json.Unmarshal(line, answer)
}

// play is [play] with Optuna's sampler. Results of earlier runs are taken from
// the cache: they do not depend on our samplers.
func (p *peer) play(pr problem, kind string, seed uint64) ([]float64, error) {
	mark, err := fingerprint(pr)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%s %s %s %s %d", p.version, mark, pr.name, kind, seed)
	if scores, err := p.cache.find(id); scores != nil || err != nil {
		return scores, err
	}
	var none any
	if err := p.order(&none, "study", kind, seed, pr.objectives); err != nil {
		return nil, err
	}
	scores, err := scoresOf(pr, func() ([]float64, error) { return p.trial(pr) })
	if err != nil {
		return nil, err
	}
	return scores, p.cache.add(id, scores)
}

func (p *peer) trial(pr problem) ([]float64, error) {
	var none any
	if err := p.order(&none, "ask"); err != nil {
		return nil, err
	}
	var failed error
	values := pr.eval(func(name string, dist study.Distribution) study.Value {
		v, err := p.suggest(name, dist)
		failed = errors.Join(failed, err)
		return v
	})
	if failed != nil {
		return nil, failed
	}
	return values, p.order(&none, "tell", values)
}

func (p *peer) suggest(name string, dist study.Distribution) (study.Value, error) {
	switch d := dist.(type) {
	case study.FloatDist:
		var v float64
		var step any
		if d.Step > 0 {
			step = d.Step
		}
		err := p.order(&v, "float", name, d.Low, d.High, d.Log, step)
		return study.F64(v), err
	case study.IntDist:
		var v int64
		err := p.order(&v, "int", name, d.Low, d.High, d.Log, max(d.Step, 1))
		return study.I64(v), err
	case *study.CatDist:
		var v uint64
		err := p.order(&v, "choice", name, len(d.Choices))
		return study.Cat(v), err
	}
	return study.Value{}, fmt.Errorf("a distribution %T has no counterpart", dist)
}

// fingerprint changes with a problem and with the way it is played.
func fingerprint(p problem) (string, error) {
	sum := sha256.New()
	for seed := range uint64(3) {
		_, get, failed := asker(&sampler.History{Seed: seed}, p, sampler.Random{})
		values := p.eval(get)
		if *failed != nil {
			return "", *failed
		}
		fmt.Fprintln(sum, values)
	}
	fmt.Fprintln(sum, peerScript, marks, p.optimum, reference)
	return fmt.Sprintf("%x", sum.Sum(nil)[:6]), nil
}

// cache keeps scores in a file of JSON lines.
type cache struct {
	file   *os.File
	scores map[string][]float64
}

type cached struct {
	ID     string    `json:"id"`
	Scores []float64 `json:"scores"`
}

func openCache(path string) (*cache, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return &cache{file: f, scores: map[string][]float64{}}, nil
}

// find looks again in the file for what is not known: another run may have added
// it meanwhile. The scores are nil if it is not there.
func (c *cache) find(id string) ([]float64, error) {
	if scores, ok := c.scores[id]; ok {
		return scores, nil
	}
	f, err := os.Open(c.file.Name())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e cached
		if json.Unmarshal(lines.Bytes(), &e) == nil { // else a line that was cut short
			c.scores[e.ID] = e.Scores
		}
	}
	return c.scores[id], lines.Err()
}

func (c *cache) add(id string, scores []float64) error {
	c.scores[id] = slices.Clone(scores)
	line, err := json.Marshal(cached{id, scores})
	if err != nil {
		return err
	}
	_, err = c.file.Write(append(line, '\n'))
	return err
}
