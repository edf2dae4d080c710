package runner

import (
	"encoding/json"
	"strings"

	"github.com/foldlog/foldlog/study"
)

// wireParam is a parameter of a space on its way to a worker process.
type wireParam struct {
	Name string          `json:"name"`
	Dist json.RawMessage `json:"dist"`
}

func encodeSpace(space *study.Space) (string, error) {
	if space == nil {
		return "", nil
	}
	wire := []wireParam{}
	for _, p := range space.Params {
		dist, err := study.AppendDistribution(nil, p.Dist)
		if err != nil {
			return "", err
		}
		wire = append(wire, wireParam{p.Name, dist})
	}
	// The distributions keep their spelling: they go into the journal verbatim.
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(wire)
	return b.String(), err
}

func decodeSpace(text string) (*study.Space, error) {
	if text == "" {
		return nil, nil
	}
	var wire []wireParam
	if err := json.Unmarshal([]byte(text), &wire); err != nil {
		return nil, err
	}
	space := new(study.Space)
	for _, p := range wire {
		dist, err := study.ParseDistribution(p.Dist)
		if err != nil {
			return nil, err
		}
		space.Params = append(space.Params, study.SpaceParam{Name: p.Name, Dist: dist})
	}
	return space, nil
}
