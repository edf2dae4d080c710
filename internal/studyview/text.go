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
		value := p.Text()
		if p.Value.Kind() == study.ValueF64 {
			value = strconv.FormatFloat(p.Value.F64(), 'g', 4, 64)
		}
		texts[i] = p.Name + "=" + value
	}
	return strings.Join(texts, " ")
}
