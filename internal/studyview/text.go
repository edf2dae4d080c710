package studyview

import (
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/study"
)

// ValuesText spells objective values for people.
func ValuesText(values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = Significant(v)
	}
	return strings.Join(texts, ", ")
}

// ParamsText spells parameters for people: "lr=0.01 opt=adam".
func ParamsText(params []study.Param) string {
	texts := make([]string, len(params))
	for i, p := range params {
		texts[i] = p.Name + "=" + ParamText(p)
	}
	return strings.Join(texts, " ")
}

// ParamText spells the value of a parameter for people: a float with four digits.
func ParamText(p study.Param) string {
	if p.Value.Kind() == study.ValueF64 {
		return strconv.FormatFloat(p.Value.F64(), 'g', 4, 64)
	}
	return p.Text()
}
