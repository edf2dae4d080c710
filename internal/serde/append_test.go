package serde

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestFloatSpelling(t *testing.T) {
	for want, f := range map[string]float64{
		"1.0": 1, "0.0": 0, "-0.0": math.Copysign(0, -1), "1000000000000000.0": 1e15, "1e16": 1e16, "0.00001": 1e-5,
		"1e-6": 1e-6, "1.5e300": 1.5e300, "5e-324": 5e-324, "1.7976931348623157e308": math.MaxFloat64, "0.42": 0.42,
		"-0.1": -0.1, "123456.789": 123456.789, "9007199254740993.0": 9007199254740993 + 1, "1.2345e-6": 1.2345e-6,
		"0.000012345": 0.000012345, "-1e100": -1e100, "1.2345678901234568e16": 12345678901234567, "1234567890123456.8": 1234567890123456.8,
		`"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1),
	} {
		if want == "9007199254740993.0" {
			want = "9007199254740994.0" // the nearest float64
		}
		if got := string(AppendFloat(nil, f)); got != want {
			t.Errorf("%g: got %s, want %s", f, got, want)
		}
	}
}

// TestFloatRule states the rule of the format again, the slow way.
func TestFloatRule(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		f := math.Float64frombits(rng.Uint64())
		if rng.IntN(2) == 0 {
			f = math.Round(rng.NormFloat64()*1e6) / math.Pow10(rng.IntN(30)-10)
		}
		checkFloatSpelling(t, f)
	}
}

func checkFloatSpelling(t *testing.T, f float64) {
	t.Helper()
	got := string(AppendFloat(nil, f))
	s := NewScanner([]byte(got))
	if back := s.Float64(); s.End() != nil || math.Float64bits(back) != math.Float64bits(f) && !(math.IsNaN(back) && math.IsNaN(f)) {
		t.Fatalf("%g: %s reads back as %g, %v", f, got, back, s.Err())
	}
	if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
		return
	}
	_, exp, _ := strings.Cut(strconv.FormatFloat(math.Abs(f), 'e', -1, 64), "e")
	kk, _ := strconv.Atoi(exp)
	kk++
	if plain := -5 < kk && kk <= 16; plain == strings.Contains(got, "e") {
		t.Fatalf("%s: point after digit %d, wrong notation", got, kk)
	}
	mant, _, sci := strings.Cut(got, "e")
	if !sci && !strings.Contains(mant, ".") || strings.HasPrefix(got, ".") {
		t.Fatalf("%s: no point", got)
	}
}

func FuzzAppendFloat(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, bits uint64) { checkFloatSpelling(t, math.Float64frombits(bits)) })
}

func TestStringSpelling(t *testing.T) {
	for in, want := range map[string]string{
		"":                         `""`,
		"plain":                    `"plain"`,
		`say "hi" \o/`:             `"say \"hi\" \\o/"`,
		"\b\t\n\f\r\x00\x1f":       `"\b\t\n\f\r\u0000\u001f"`,
		"<&>\x7f\u2028é\U0001F600": "\"<&>\x7f\u2028é\U0001F600\"",
	} {
		if got := string(AppendString(nil, in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
		if got := string(appendStringBytes(nil, []byte(in))); got != want {
			t.Errorf("%q as bytes: got %s, want %s", in, got, want)
		}
		s := NewScanner([]byte(want))
		if got := s.String(); got != in || s.End() != nil {
			t.Errorf("%s: reads back as %q, %v", want, got, s.Err())
		}
	}
}

func TestValidString(t *testing.T) {
	if err := ValidString("é\U0001F600\x00"); err != nil {
		t.Fatal(err)
	}
	var at *Error
	if err := ValidString("ab\xffc"); !errors.Is(err, ErrUTF8) || !errors.As(err, &at) || at.Offset != 2 {
		t.Fatalf("got %v", err)
	}
}

func TestPortableIsCanonical(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : 1 , "a" : [ 1.50 , -0 , 1E2 , {} , [] ] , "B" : null } `: `{"B":null,"a":[1.5,-0,100.0,{},[]],"b":1}`,
		`{"é":1,"z":2,"a":3,"":4}`:                                         `{"":4,"a":3,"z":2,"é":1}`,
		`123456789012345678901234567890`:                                   `123456789012345678901234567890`,
		`{"c":{"y":1,"x":{"b":[true],"a":""}}}`:                            `{"c":{"x":{"a":"","b":[true]},"y":1}}`,
		`"\u003c\/\ud83d\ude00\u2028"`:                                     "\"</\U0001F600\u2028\"",
		`"NaN"`:                                                            `"NaN"`,
		`{"\u0062":1,"a":2}`:                                               `{"a":2,"b":1}`,
		`-0.0`:                                                             `-0.0`,
	} {
		got, err := AppendPortable([]byte("x"), []byte(in))
		if err != nil || string(got) != "x"+want {
			t.Errorf("%s: got %s, %v, want x%s", in, got, err, want)
		}
	}
}

func TestPortableRefusesByName(t *testing.T) {
	for in, want := range map[string]error{
		`{"a":1,"a":2}`: ErrDuplicateKey, `{"a":1,"b":0,"\u0061":2}`: ErrDuplicateKey, `[{"x":{"k":1,"k":1}}]`: ErrDuplicateKey,
		`NaN`: ErrNonFinite, `[-Infinity]`: ErrNonFinite, `{"a":1e999}`: ErrRange, `"\ud800"`: ErrSurrogate, "\"\xc3\"": ErrUTF8,
		strings.Repeat("[", MaxDepth+1): ErrDepth, `1,`: ErrSyntax, ``: ErrSyntax, `{"a":}`: ErrSyntax, `[1`: ErrSyntax,
	} {
		if got, err := AppendPortable([]byte("x"), []byte(in)); !errors.Is(err, want) || string(got) != "x" {
			t.Errorf("%s: got %s, %v, want %v", in, got, err, want)
		}
	}
}

func FuzzAppendPortable(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := AppendPortable(nil, in)
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q: %q is not JSON", in, once)
		}
		twice, err := AppendPortable(nil, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q: %q, then %q, %v", in, once, twice, err)
		}
	})
}
