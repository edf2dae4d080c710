package pruner

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/algospec"
	"github.com/foldlog/foldlog/study"
)

// Attribute is the system attribute of a study that holds the text of its
// pruner ([Parse]), as a JSON string. Without it nothing is pruned.
const Attribute = "foldlog:pruner"

// Default is the text of the pruner of a study that names none.
const Default = "none"

const maxSteps = 1 << 53

func steps(o *algospec.Options, name string, low uint64) uint64 {
	return o.Uint(name, low, maxSteps)
}

// builders make the pruners that [Parse] knows, but for patient, which contains
// one of them.
var builders = map[string]func(o *algospec.Options) Pruner{
	"none":   func(*algospec.Options) Pruner { return None{} },
	"median": func(o *algospec.Options) Pruner { return Median{o.Int("startup", 1, 1<<20), steps(o, "warmup", 0)} },
	"percentile": func(o *algospec.Options) Pruner {
		return Percentile{o.Float("percentile", 1e-9, 100), o.Int("startup", 1, 1<<20), steps(o, "warmup", 0)}
	},
	"halving": func(o *algospec.Options) Pruner {
		return Halving{steps(o, "min", 1), o.Int("reduction", 2, 1<<20), o.Int("rate", 0, 64)}
	},
	"hyperband": func(o *algospec.Options) Pruner {
		p := Hyperband{steps(o, "min", 1), steps(o, "max", 1), o.Int("reduction", 2, 1<<20)}
		if p.Max > 0 && p.Max < p.Min {
			o.Fail("max=%d is below min=%d", p.Max, p.Min)
		}
		return p
	},
	"threshold": func(o *algospec.Options) Pruner {
		p := Threshold{bound(o, "lower"), bound(o, "upper"), steps(o, "warmup", 0)}
		if p.Lower == nil && p.Upper == nil {
			o.Fail("lower or upper is missing")
		}
		return p
	},
}

func bound(o *algospec.Options, name string) *float64 {
	if !o.Has(name) {
		return nil
	}
	f := o.Float(name, -math.MaxFloat64, math.MaxFloat64)
	return &f
}

var family = algospec.Family[Pruner]{Kind: "pruner", Attribute: Attribute, Default: Default, Builders: withPatient()}

// Names are the names of the pruners.
func Names() []string { return family.Names() }

func withPatient() map[string]func(o *algospec.Options) Pruner {
	all := maps.Clone(builders)
	all["patient"] = patient
	return all
}

// patient takes the options of the pruner inside too.
func patient(o *algospec.Options) Pruner {
	p := Patient{Patience: o.Int("patience", 1, 1<<20), MinDelta: o.Float("min_delta", 0, math.MaxFloat64)}
	if !o.Has("pruner") {
		return p
	}
	name := o.Text("pruner")
	build, ok := builders[name]
	if !ok {
		o.Fail("pruner=%.40s: unknown name (%s)", name, strings.Join(slices.Sorted(maps.Keys(builders)), ", "))
		return p
	}
	p.Inner = build(o)
	return p
}

// Parse makes a pruner from its text: a name, or a name and options as in
// "median:startup=10,warmup=5". The options are the fields of the type, in lower
// case; patient takes pruner=NAME and that one's options besides its own. The
// error says what is wrong and wraps [study.ErrInvalid].
func Parse(text string) (Pruner, error) { return family.Parse(text) }

// Text is the text that [Parse] makes a pruner from. The error, of a pruner that is not
// one of this package or has an option that none may have, wraps [study.ErrInvalid].
func Text(p Pruner) (string, error) {
	name, options := algospec.Spell(p)
	if outer, ok := p.(Patient); ok && outer.Inner != nil {
		inner, innerOptions := algospec.Spell(outer.Inner)
		options = append(append(options, "pruner="+inner), innerOptions...)
	}
	text := algospec.Join(name, options)
	return text, family.CheckText(text, p)
}

// Choose makes a pruner that of a study, for everybody who works on it. The errors are
// those of [Text] and [Check].
func Choose(tx *study.Tx, id study.StudyID, p Pruner) error {
	text, err := Text(p)
	if err != nil {
		return err
	}
	return family.Choose(tx, id, text, func(c study.Config) error { return Check(p, c) })
}

// TextOf is the text that names the pruner of a study, for people: [Default] without
// one, and as it is stored if that is no text.
func TextOf(st *study.Study) string { return family.TextOf(st) }

// Of returns the pruner of a study. The error is that of [Parse] or [Check].
func Of(st *study.Study) (Pruner, error) {
	p, err := family.Of(st)
	if err != nil {
		return nil, err
	}
	return p, Check(p, st.Config)
}

// Check refuses a pruner that cannot work on a study of that configuration: one
// with several objectives. The error wraps [study.ErrInvalid].
func Check(p Pruner, c study.Config) error {
	if _, none := p.(None); !none && len(c.Directions) != 1 {
		return fmt.Errorf("%w: pruners work on one objective, the study has %d", study.ErrInvalid, len(c.Directions))
	}
	return nil
}
