package optuna

import (
	"io"
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// exportWorker is the worker that the records of an export name. None of
// Optuna's is called so.
const exportWorker = "foldlog"

// Export writes studies as a journal file of Optuna's JournalStorage, which its
// releases from 3.1 on open: each study with its attributes, then every trial with
// everything, in the order of creation. Studies and trials are numbered anew, from
// 0; the numbers of trials within their studies stay. Times are local, as Optuna's
// are. The file is written as it comes, so that it may be longer than memory.
func Export(w io.Writer, snap *study.Snapshot, studies []*study.Study) error {
	e := exporter{w: w, view: newViewer(), ids: map[study.StudyID]int{}}
	for i, st := range studies {
		e.ids[st.ID] = i
		if err := e.study(i, st); err != nil {
			return err
		}
	}
	for id := range snap.NumTrials() {
		t, _ := snap.Trial(study.TrialID(id)) // there are NumTrials of them
		if in, wanted := e.ids[t.Study]; wanted {
			if err := e.trial(in, t); err != nil {
				return err
			}
		}
	}
	return nil
}

type exporter struct {
	w    io.Writer
	view *viewer
	ids  map[study.StudyID]int
	b    []byte
}

// begin begins a record.
func (e *exporter) begin(op int) {
	e.b = strconv.AppendInt(append(e.b[:0], `{"op_code":`...), int64(op), 10)
	e.b = append(e.b, `,"worker_id":"`+exportWorker+`"`...)
}

// name begins a field.
func (e *exporter) name(name string) { e.b = append(append(e.b, `,"`...), name+`":`...) }

func (e *exporter) intField(name string, n int64) {
	e.name(name)
	e.b = strconv.AppendInt(e.b, n, 10)
}

// end writes the record.
func (e *exporter) end() error {
	e.b = append(e.b, "}\n"...)
	_, err := e.w.Write(e.b)
	return err
}

func (e *exporter) study(id int, st *study.Study) error {
	e.begin(opCreateStudy)
	e.name("study_name")
	e.b = serde.AppendString(e.b, st.Config.Name)
	e.name("directions")
	e.b = append(e.b, '[')
	for i, d := range st.Config.Directions {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, '1'+byte(d))
	}
	e.b = append(e.b, ']')
	if err := e.end(); err != nil {
		return err
	}
	user, system := attrMaps(st.Attrs())
	if err := e.studyAttrs(opSetStudyUserAttr, id, "user_attr", user); err != nil {
		return err
	}
	return e.studyAttrs(opSetStudySystemAttr, id, "system_attr", system)
}

func (e *exporter) studyAttrs(op, id int, field string, attrs map[string]string) error {
	for _, key := range sortedKeys(attrs) {
		e.begin(op)
		e.intField("study_id", int64(id))
		e.name(field)
		e.object(map[string]string{key: attrs[key]})
		if err := e.end(); err != nil {
			return err
		}
	}
	return nil
}

// object appends an object of values that are JSON already.
func (e *exporter) object(m map[string]string) {
	e.b = append(e.b, '{')
	for i, key := range sortedKeys(m) {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.b = append(serde.AppendString(e.b, key), ':')
		e.b = append(e.b, oneLine(m[key])...)
	}
	e.b = append(e.b, '}')
}

func (e *exporter) trial(in int, t *study.Trial) error {
	e.begin(opCreateTrial)
	e.intField("study_id", int64(in))
	e.intField("state", int64(stateNumbers[stateOf(t)]))
	e.values(valuesOf(t))
	e.times(t)
	e.params(t)
	user, system := attrMaps(t.Attrs())
	e.name("user_attrs")
	e.object(user)
	e.name("system_attrs")
	e.object(system)
	e.curve(t)
	return e.end()
}

// values are one value alone, or a list, as Optuna has them.
func (e *exporter) values(values []float64) {
	switch len(values) {
	case 0:
		e.b = append(e.b, `,"value":null,"values":null`...)
	case 1:
		e.b = appendPyFloat(append(e.b, `,"value":`...), values[0])
		e.b = append(e.b, `,"values":null`...)
	default:
		e.b = append(e.b, `,"value":null,"values":[`...)
		for i, v := range values {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.b = appendPyFloat(e.b, v)
		}
		e.b = append(e.b, ']')
	}
}

// times are the start, null if there is none, and the end if there is one.
func (e *exporter) times(t *study.Trial) {
	e.name("datetime_start")
	if m := startOf(t); m.known {
		e.b = serde.AppendString(e.b, m.file())
	} else {
		e.b = append(e.b, "null"...)
	}
	if m := completeOf(t); m.known {
		e.name("datetime_complete")
		e.b = serde.AppendString(e.b, m.file())
	}
}

func (e *exporter) params(t *study.Trial) {
	sep := ""
	e.name("distributions")
	e.b = append(e.b, '{')
	for _, p := range t.Params {
		if text := e.view.dist(p.Dist); text != "" {
			e.b = append(serde.AppendString(append(e.b, sep...), p.Name), ':')
			e.b = serde.AppendString(e.b, text)
			sep = ","
		}
	}
	sep = ""
	e.b = append(e.b, `},"params":{`...)
	for _, p := range t.Params {
		if x, ok := toInternal(p.Value); ok && e.view.dist(p.Dist) != "" {
			e.b = append(serde.AppendString(append(e.b, sep...), p.Name), ':')
			e.b = e.internal(p, x)
			sep = ","
		}
	}
	e.b = append(e.b, '}')
}

// internal appends Optuna's internal value. Categories are indices, which Python
// wants without a point.
func (e *exporter) internal(p study.Param, x float64) []byte {
	switch p.Value.Kind() {
	case study.ValueCat, study.ValueBool:
		return strconv.AppendInt(e.b, int64(x), 10)
	}
	if d, ok := p.Dist.(study.OtherDist); ok {
		text, _ := otherText(d)
		if kind, _ := kindOf([]byte(text)); kind == "CategoricalDistribution" {
			return strconv.AppendInt(e.b, int64(x), 10)
		}
	}
	return appendPyFloat(e.b, x)
}

func (e *exporter) curve(t *study.Trial) {
	e.name("intermediate_values")
	e.b = append(e.b, '{')
	last := map[int64]float64{}
	var order []int64
	for _, p := range points(t) {
		if _, again := last[p.step]; !again {
			order = append(order, p.step)
		}
		last[p.step] = p.value
	}
	for i, step := range order {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.b = append(strconv.AppendInt(append(e.b, '"'), step, 10), `":`...)
		e.b = appendPyFloat(e.b, last[step])
	}
	e.b = append(e.b, '}')
}
