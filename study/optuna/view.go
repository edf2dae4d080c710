package optuna

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

// viewer makes messages of what a snapshot shows. It remembers how distributions
// are spelled, since thousands of trials share a few.
type viewer struct {
	dists map[study.Distribution]string
	// near is how the distributions of the trial before were spelled, which most
	// trials have as well.
	near   []spelling
	points []point
	buf    []byte
}

// spelling is a distribution in the short form.
type spelling struct {
	dist study.Distribution
	text string
}

func newViewer() *viewer { return &viewer{dists: map[study.Distribution]string{}} }

// dist is a distribution as Optuna spells it, "" for one it has no notion of.
func (v *viewer) dist(d study.Distribution) string { return v.spelled(d, appendDist) }

// shortDist is dist in the short form, of which a client reads thousands faster,
// for the i-th parameter of a trial.
func (v *viewer) shortDist(i int, d study.Distribution) string {
	if i < len(v.near) && v.near[i].dist == d {
		return v.near[i].text
	}
	text := v.spelled(d, appendShortDist)
	v.near = append(v.near[:min(i, len(v.near))], spelling{d, text})
	return text
}

func (v *viewer) spelled(d study.Distribution, spell func([]byte, study.Distribution) ([]byte, bool)) string {
	text, ok := v.dists[d]
	if !ok {
		if v.buf, ok = spell(v.buf[:0], d); ok {
			text = string(v.buf)
		}
		v.dists[d] = text
	}
	return text
}

func (v *viewer) study(st *study.Study) *pb.Study {
	m := &pb.Study{StudyId: int64(st.ID), StudyName: st.Config.Name, Directions: directionsOf(st)}
	m.UserAttributes, m.SystemAttributes = attrMaps(st.Attrs())
	return m
}

func directionsOf(st *study.Study) []pb.StudyDirection {
	ds := make([]pb.StudyDirection, len(st.Config.Directions))
	for i, d := range st.Config.Directions {
		if d == study.Maximize {
			ds[i] = pb.StudyDirection_MAXIMIZE
		}
	}
	return ds
}

// points are the intermediate values; of those of one step the last one counts.
func points(t *study.Trial) []point { return appendPoints(make([]point, 0, t.NumReports()), t) }

func appendPoints(ps []point, t *study.Trial) []point {
	for key, a := range t.Attrs() {
		if text, ok := strings.CutPrefix(key, stepKey); ok {
			step, err := strconv.ParseInt(text, 10, 64)
			s := serde.NewScanner(a.Value)
			if value := s.Float64(); err == nil && s.End() == nil {
				ps = append(ps, point{step, value})
			}
		}
	}
	for step, values := range t.Reports() {
		if step < 1<<63 && len(values) > 0 {
			ps = append(ps, point{int64(step), values[0]})
		}
	}
	return ps
}

// selectTrials are the trials of a study, by number, whose id is greater than one
// or among those included. It costs nothing for the others.
func selectTrials(snap *study.Snapshot, st *study.Study, included []int64, greater int64) []*study.Trial {
	at := func(number int) *study.Trial {
		t, _ := snap.TrialByNumber(st.ID, uint64(number)) // there are NumTrials of them
		return t
	}
	from := sort.Search(st.NumTrials(), func(i int) bool { return int64(at(i).ID) > greater })
	included = slices.Clone(included)
	slices.Sort(included)
	trials := make([]*study.Trial, 0, st.NumTrials()-from+len(included))
	for _, id := range slices.Compact(included) {
		if id < 0 || id > greater {
			continue
		}
		if t, err := snap.Trial(study.TrialID(id)); err == nil && t.Study == st.ID {
			trials = append(trials, t)
		}
	}
	for i := from; i < st.NumTrials(); i++ {
		trials = append(trials, at(i))
	}
	return trials
}
