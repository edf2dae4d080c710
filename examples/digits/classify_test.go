package digits

import "testing"

func TestAClassifierRecognisesDigits(t *testing.T) {
	c, err := Fit(t.Context(), Params{Hidden: 48, LR: 0.005})
	if err != nil {
		t.Fatal(err)
	}
	data, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	hits := 0
	for i := range data.Validation {
		label, likely := c.Classify(&data.Validation[i].Image)
		if likely < 0.1 || likely > 1 {
			t.Fatalf("likely %v", likely)
		}
		if label == data.Validation[i].Label {
			hits++
		}
	}
	if hits < len(data.Validation)*95/100 {
		t.Errorf("%d of %d are recognised", hits, len(data.Validation))
	}
	if _, err := Fit(t.Context(), Params{LR: -1}); err == nil {
		t.Error("wrong parameters were taken")
	}
}
