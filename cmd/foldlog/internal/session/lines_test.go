package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestASessionGoesOnAfterWhatIsNoRequest(t *testing.T) {
	long := func(n int) string { return `{"id":9,"do":"` + strings.Repeat("x", n-17) + `"}` + "\n" }
	input := `{"id":1,"do":5}` + "\n[]\n\n  \n{\n" + long(200) + long(100_000) + long(64) + `{"id":2,"step":-1}` + "\n" + `{"id":3,"do":"fly"}`
	lines := make(chan []byte)
	broken := make(chan error, 1)
	go func() { broken <- readLines(t.Context(), strings.NewReader(input), 64, lines) }()
	var got []string
	for line := range lines {
		var r struct {
			ID   json.RawMessage
			Do   string `json:"do"`
			Step uint64 `json:"step"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			got = append(got, string(bytes.TrimSpace(r.ID))+" "+WrongRequest(line, 64, err).Error())
		} else {
			got = append(got, string(r.ID)+" "+r.Do[:3])
		}
	}
	want := []string{
		`1 request: "do" cannot be number`,
		" request: want an object, not array",
		" request: unexpected end of JSON input",
		" request: longer than 64 bytes",
		" request: longer than 64 bytes",
		"9 xxx",
		`2 request: "step" cannot be number -1`,
		"3 fly",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if err := <-broken; err != nil {
		t.Error(err)
	}
}
