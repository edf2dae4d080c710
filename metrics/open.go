package metrics

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
)

// OpenMetadata is the identity of a run as the document has it. Every part may
// be left out. [OpenMetadata.Metadata] spells it.
type OpenMetadata struct {
	SexpGPU string         `json:"sexpgpu,omitempty"` // version of the frontend
	Entry   string         `json:"entry,omitempty"`   // the experiment file
	Variant *string        `json:"variant"`           // nil is null: none selected
	Knobs   map[string]any `json:"knobs,omitempty"`   // every knob with its value
	Run     *RunSettings   `json:"run,omitempty"`
	Sources []Source       `json:"sources,omitempty"`
	Device  string         `json:"device,omitempty"`  // cpu or cuda
	Devices []int          `json:"devices,omitempty"` // CUDA ordinals in rank order
	// Other are members that the document does not have.
	Other map[string]any `json:"-"`
}

// RunSettings is the key run of the open metadata.
type RunSettings struct {
	Steps           int64      `json:"steps"`
	Microbatches    int64      `json:"microbatches,omitempty"`
	Evals           []EvalPass `json:"evals,omitempty"`
	CheckpointEvery int64      `json:"checkpoint_every,omitempty"`
	Precision       string     `json:"precision,omitempty"`
	Seed            uint64     `json:"seed"`
	Diagnostics     any        `json:"diagnostics,omitempty"`
	DiagnoseEvery   int64      `json:"diagnose_every,omitempty"`
	DiagnoseFirst   int64      `json:"diagnose_first,omitempty"`
}

// EvalPass is one evaluation pass of a run.
type EvalPass struct {
	Name    string `json:"name"`
	Every   int64  `json:"every"` // steps
	Batches int64  `json:"batches"`
}

// Source is one file of the manifest: path and hash, never its contents.
type Source struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Metadata spells the identity, with the other members after the known ones.
func (m OpenMetadata) Metadata() (Metadata, error) {
	known, err := MetaOf(m)
	if err != nil || len(m.Other) == 0 {
		return known, err
	}
	other, err := MetaOf(m.Other)
	return other.Merge(known), err
}

// MarshalJSON spells a Number as [Number.Append] does, so that knobs can be
// Numbers, non-finite ones too.
func (n Number) MarshalJSON() ([]byte, error) { return n.Append(nil), nil }

// NewOpen makes the first event of a run, without a time. Metadata beyond
// [MaxOpenMetadata] has its sources replaced by "N files, too large to
// record"; if it is too large even so the error is a [LimitError]. A
// description beyond [MaxDescription] is cut.
func NewOpen(slug, description string, metadata Metadata) (Event, error) {
	if err := CheckSlug(slug); err != nil {
		return Event{}, err
	}
	m, err := metadata.compact()
	if err != nil {
		return Event{}, fmt.Errorf("open %q: %w", slug, err)
	}
	if len(m) > MaxOpenMetadata {
		m = m.withoutSources()
	}
	if len(m) > MaxOpenMetadata {
		return Event{}, &LimitError{"open metadata", len(m), MaxOpenMetadata, "bytes", ErrTooLarge}
	}
	return Event{Kind: KindOpen, Slug: slug, Description: CutText(mend(description), MaxDescription), Metadata: m}, nil
}

// withoutSources puts the count sentence in place of a list of sources.
func (m Metadata) withoutSources() Metadata {
	raw, ok := m.Get("sources")
	if !ok || !strings.HasPrefix(raw, "[") {
		return m
	}
	n := 0
	s := serde.NewScanner([]byte(raw))
	for s.Array(); s.NextElem(); n++ {
		s.Skip()
	}
	return m.Merge(Meta("sources", countSentence(n)))
}

// ReadSources returns the sources of an open's metadata, or the sentence that
// stands for them.
func ReadSources(m Metadata) (sources []Source, sentence string) {
	raw, ok := m.Get("sources")
	if !ok || json.Unmarshal([]byte(raw), &sources) == nil {
		return sources, ""
	}
	return nil, textOf(raw)
}
