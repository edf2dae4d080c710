package sampler

import (
	"github.com/foldlog/foldlog/internal/algospec"
	"github.com/foldlog/foldlog/study"
)

// Attribute is the system attribute of a study that holds the text of its
// sampler ([Parse]), as a JSON string. Without it the sampler is [Default].
const Attribute = "foldlog:sampler"

// Default is the text of the sampler of a study that names none.
const Default = "tpe"

// builders make the samplers that [Parse] knows.
var builders = map[string]func(o *algospec.Options) Sampler{
	"random": func(*algospec.Options) Sampler { return Random{} },
	"grid":   func(o *algospec.Options) Sampler { return Grid{Points: o.Int("points", 1, 1<<20)} },
	"qmc":    func(o *algospec.Options) Sampler { return QMC{Plain: o.Bool("plain")} },
	"tpe": func(o *algospec.Options) Sampler {
		if o.Has("univariate") && o.Has("multivariate") {
			o.Fail("univariate and multivariate exclude each other")
		}
		return TPE{Startup: o.Int("startup", 1, 1<<20), Candidates: o.Int("candidates", 1, 1<<16),
			Univariate: o.Bool("univariate"), Multivariate: o.Bool("multivariate")}
	},
	"cmaes": func(o *algospec.Options) Sampler {
		return CMAES{Population: o.Int("population", 2, 1<<16), Sigma: o.Float("sigma", 1e-6, 1)}
	},
	"nsga2": func(o *algospec.Options) Sampler {
		return NSGA2{Population: o.Int("population", 2, 1<<16), Crossover: o.Float("crossover", 1e-9, 1), Mutation: o.Float("mutation", 1e-9, 1)}
	},
}

var family = algospec.Family[Sampler]{Kind: "sampler", Attribute: Attribute, Default: Default, Builders: builders}

// Names are the names of the samplers.
func Names() []string { return family.Names() }

// Parse makes a sampler from its text: a name, or a name and options as in
// "tpe:univariate,startup=20". The options are the fields of the type, in lower
// case. The error says what is wrong and wraps [study.ErrInvalid].
func Parse(text string) (Sampler, error) { return family.Parse(text) }

// Text is the text that [Parse] makes a sampler from. The error, of a sampler that is
// not one of this package or has an option that none may have, wraps
// [study.ErrInvalid].
func Text(s Sampler) (string, error) {
	text := algospec.Join(algospec.Spell(s))
	return text, family.CheckText(text, s)
}

// Choose makes a sampler that of a study: whoever asks for trials, in any process, gets
// them from it. The errors are those of [Text] and [Check].
func Choose(tx *study.Tx, id study.StudyID, s Sampler) error {
	text, err := Text(s)
	if err != nil {
		return err
	}
	return family.Choose(tx, id, text, func(c study.Config) error { return Check(s, c) })
}

// TextOf is the text that names the sampler of a study, for people: [Default] without
// one, and as it is stored if that is no text.
func TextOf(st *study.Study) string { return family.TextOf(st) }

// Of returns the sampler of a study. The error is that of [Parse].
func Of(st *study.Study) (Sampler, error) { return family.Of(st) }

// Check refuses a sampler that cannot work on a study of that configuration.
// The error wraps [study.ErrInvalid].
func Check(s Sampler, c study.Config) error {
	if len(c.Directions) == 0 {
		return errNoObjective
	}
	h := &History{Directions: c.Directions}
	if c.Space == nil {
		_, err := sample(s, h, nil)
		return err
	}
	for _, group := range groups(c.Space.Params) {
		if _, err := sample(s, h, group); err != nil {
			return err
		}
	}
	return nil
}
