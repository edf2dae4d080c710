package serde

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// decode builds what encoding/json with UseNumber would.
func decode(s *Scanner) any {
	switch s.Peek() {
	case '{':
		m := map[string]any{}
		for s.Object(); s.NextKey(); {
			k := string(s.Key())
			m[k] = decode(s)
		}
		return m
	case '[':
		a := []any{}
		for s.Array(); s.NextElem(); {
			a = append(a, decode(s))
		}
		return a
	case '"':
		return s.String()
	case 't', 'f':
		return s.Bool()
	case 'n':
		s.Null()
		return nil
	}
	return json.Number(s.Raw())
}

func decodeAll(b []byte) (any, error) {
	s := NewScanner(b)
	v := decode(&s)
	return v, s.End()
}

var texts = []string{
	`{}`, `[]`, ` { "a" : [ 1 , 2.5e-3 , -0 , true , false , null , "x\u00e9\ud83d\ude00\n" ] , "b" : { } } `,
	`"\"\\\/\b\f\n\r\t"`, `""`, `0`, `-0.0`, `1E5`, `1e+5`, `18446744073709551615`, `{"é":"<&>` + "\u2028\x7f" + `"}`,
	`{"a":1,"a":2}`, strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), `[[],[],{"x":{}},3]`,
}

var faults = []struct {
	name, text string
	want       error
}{
	{"empty", ``, ErrSyntax},
	{"only space", ` `, ErrSyntax},
	{"trailing comma in array", `[1,]`, ErrSyntax},
	{"trailing comma in object", `{"a":1,}`, ErrSyntax},
	{"leading comma", `[,1]`, ErrSyntax},
	{"no comma", `[1 2]`, ErrSyntax},
	{"no colon", `{"a" 1}`, ErrSyntax},
	{"bare key", `{a:1}`, ErrSyntax},
	{"number key", `{1:1}`, ErrSyntax},
	{"open array", `[1`, ErrSyntax},
	{"open object", `{"a":1`, ErrSyntax},
	{"wrong bracket", `[1}`, ErrSyntax},
	{"two values", `1 2`, ErrSyntax},
	{"leading zero", `01`, ErrSyntax},
	{"leading zero after sign", `-01`, ErrSyntax},
	{"plus", `+1`, ErrSyntax},
	{"only sign", `-`, ErrSyntax},
	{"no digit after point", `1.`, ErrSyntax},
	{"no digit before point", `.5`, ErrSyntax},
	{"no digit in exponent", `1e+`, ErrSyntax},
	{"bare NaN", `NaN`, ErrNonFinite},
	{"bare Infinity", `[Infinity]`, ErrNonFinite},
	{"bare minus Infinity", `{"a":-Infinity}`, ErrNonFinite},
	{"half literal", `tru`, ErrSyntax},
	{"open string", `"a`, ErrSyntax},
	{"newline in string", "\"a\nb\"", ErrSyntax},
	{"NUL in string", "\"\x00\"", ErrSyntax},
	{"unknown escape", `"\x"`, ErrSyntax},
	{"cut escape", `"\`, ErrSyntax},
	{"bad hex", `"\u00g0"`, ErrSyntax},
	{"cut hex", `"\u00"`, ErrSyntax},
	{"lone high surrogate", `"\ud83d"`, ErrSurrogate},
	{"lone low surrogate", `"\ude00"`, ErrSurrogate},
	{"two high surrogates", `"\ud83d\ud83d"`, ErrSurrogate},
	{"lone surrogate in key", `{"\ud83d":1}`, ErrSurrogate},
	{"bad UTF-8", "\"\xff\"", ErrUTF8},
	{"cut UTF-8", "\"\xe2\x80\"", ErrUTF8},
	{"surrogate as UTF-8", "\"\xed\xa0\x80\"", ErrUTF8},
	{"too deep", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), ErrDepth},
	{"deep without end", strings.Repeat(`{"a":`, 100000), ErrDepth},
}

func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range texts {
		checkAgreement(t, []byte(text))
	}
	for _, f := range faults {
		checkAgreement(t, []byte(f.text))
	}
}

func TestScannerRefusesByName(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			_, err := decodeAll([]byte(f.text))
			s := NewScanner([]byte(f.text))
			s.Skip()
			skipErr := s.End()
			for _, err := range []error{err, skipErr} {
				var at *Error
				if !errors.Is(err, f.want) || !errors.As(err, &at) {
					t.Fatalf("%q: got %v, want an Error around %v", f.text, err, f.want)
				}
				if at.Offset < 0 || at.Offset > len(f.text) {
					t.Fatalf("%q: offset %d is outside", f.text, at.Offset)
				}
			}
		})
	}
}

func checkAgreement(t *testing.T, b []byte) {
	t.Helper()
	got, err := decodeAll(b)
	s := NewScanner(b)
	raw := s.Raw()
	rawErr := s.End()
	if (err == nil) != (rawErr == nil) {
		t.Fatalf("%q: reading says %v, Raw says %v", b, err, rawErr)
	}
	stricter := errors.Is(err, ErrUTF8) || errors.Is(err, ErrSurrogate) || errors.Is(err, ErrDepth)
	if valid := json.Valid(b); valid != (err == nil) && !(valid && stricter) {
		t.Fatalf("%q: encoding/json valid=%v, here %v", b, valid, err)
	}
	if err != nil {
		return
	}
	if !bytes.Equal(raw, bytes.Trim(b, " \t\r\n")) {
		t.Fatalf("%q: raw is %q", b, raw)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var want any
	if err := dec.Decode(&want); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%q: encoding/json reads %v, here %v", b, want, got)
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	for _, c := range faults {
		if len(c.text) < 1000 {
			f.Add([]byte(c.text))
		}
	}
	f.Fuzz(checkAgreement)
}

func FuzzFloat64(f *testing.F) {
	for _, text := range []string{"0", "-0", "1e400", "5e-324", "0.1", "123456789012345678901234567890", "9007199254740993", "1e22", "1e23", "1e-400"} {
		f.Add(text)
	}
	f.Fuzz(checkFloat64)
}

func checkFloat64(t *testing.T, text string) {
	s := NewScanner([]byte(text))
	got := s.Float64()
	err := s.End()
	want, wantErr := strconv.ParseFloat(strings.Trim(text, " \t\r\n"), 64)
	if !json.Valid([]byte(text)) || strings.ContainsAny(text, `"[{tfn`) {
		return
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: got %v, strconv %v", text, err, wantErr)
	}
	if err == nil && math.Float64bits(got) != math.Float64bits(want) {
		t.Fatalf("%q: got %v, strconv %v", text, got, want)
	}
}

func TestIntegers(t *testing.T) {
	cases := []struct {
		text string
		u    uint64
		uErr error
		i    int64
		iErr error
	}{
		{"0", 0, nil, 0, nil},
		{"18446744073709551615", math.MaxUint64, nil, 0, ErrRange},
		{"18446744073709551616", 0, ErrRange, 0, ErrRange},
		{"99999999999999999999", 0, ErrRange, 0, ErrRange},
		{"9223372036854775807", math.MaxInt64, nil, math.MaxInt64, nil},
		{"9223372036854775808", 1 << 63, nil, 0, ErrRange},
		{"-9223372036854775808", 0, ErrType, math.MinInt64, nil},
		{"-9223372036854775809", 0, ErrType, 0, ErrRange},
		{"-1", 0, ErrType, -1, nil},
		{"1.0", 0, ErrType, 0, ErrType},
		{"1e3", 0, ErrType, 0, ErrType},
		{`"1"`, 0, ErrType, 0, ErrType},
		{"00", 0, ErrSyntax, 0, ErrSyntax},
		{"0123456789012345678901234567890", 0, ErrSyntax, 0, ErrSyntax},
		{"", 0, ErrSyntax, 0, ErrSyntax},
		{"null", 0, ErrType, 0, ErrType},
	}
	for _, c := range cases {
		s := NewScanner([]byte(c.text))
		u := s.Uint64()
		if err := s.End(); u != c.u && err == nil || !errors.Is(err, c.uErr) {
			t.Errorf("Uint64(%q) = %d, %v; want %d, %v", c.text, u, err, c.u, c.uErr)
		}
		s.Reset([]byte(c.text))
		i := s.Int64()
		if err := s.End(); i != c.i && err == nil || !errors.Is(err, c.iErr) {
			t.Errorf("Int64(%q) = %d, %v; want %d, %v", c.text, i, err, c.i, c.iErr)
		}
	}
}

func TestFloatsReadAsNumbersOrNames(t *testing.T) {
	for text, want := range map[string]float64{
		"1": 1, "-0": math.Copysign(0, -1), "0.42": 0.42, "1e22": 1e22, "5e-324": 5e-324, "1.797e308": 1.797e308,
		`"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1), "1e-400": 0,
	} {
		s := NewScanner([]byte(text))
		got := s.Float64()
		if err := s.End(); err != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]error{
		"1e400": ErrRange, `"nan"`: ErrType, `"1"`: ErrType, "null": ErrType, "NaN": ErrNonFinite, "-Infinity": ErrNonFinite, "01": ErrSyntax,
	} {
		s := NewScanner([]byte(text))
		s.Float64()
		if err := s.End(); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", text, err, want)
		}
	}
}

func TestErrorsAreStickyAndPlaced(t *testing.T) {
	s := NewScanner([]byte(`{"a":[1,x],"b":2}`))
	for s.Object(); s.NextKey(); {
		if string(s.Key()) == "b" {
			t.Fatal("went on after a fault")
		}
		for s.Array(); s.NextElem(); {
			s.Uint64()
		}
	}
	var at *Error
	if err := s.End(); !errors.As(err, &at) || at.Offset != 8 {
		t.Fatalf("got %v, want offset 8", err)
	}
	s.Fail(errors.New("later"))
	if s.Uint64() != 0 || s.Raw() != nil || s.Peek() != 0 || s.Null() || s.Err() != at {
		t.Fatal("the first fault must stay, and values be zero")
	}
}

func TestKeysKeepTheirSpelling(t *testing.T) {
	s := NewScanner([]byte(`{"\u0061":1}`))
	s.Object()
	if !s.NextKey() || string(s.Key()) != "a" || string(s.RawKey()) != `"\u0061"` {
		t.Fatalf("key %q, raw %q", s.Key(), s.RawKey())
	}
}

const line = `{"record":"op","seq":123456,"worker":4503599627370495,"at_millis":1700000000123,"op":{"kind":"report","trial":99999,"step":17,"values":[0.123456789]}}`

func scanLine(s *Scanner) (sum float64) {
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "seq", "worker", "at_millis":
			sum += float64(s.Uint64())
		case "op":
			for s.Object(); s.NextKey(); {
				switch string(s.Key()) {
				case "trial", "step":
					sum += float64(s.Uint64())
				case "values":
					for s.Array(); s.NextElem(); {
						sum += s.Float64()
					}
				default:
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
	return sum
}

func TestPlainInputAllocatesNothing(t *testing.T) {
	b := []byte(line)
	s := NewScanner(b)
	if n := testing.AllocsPerRun(100, func() { s.Reset(b); scanLine(&s) }); n != 0 || s.End() != nil {
		t.Fatalf("%v allocations, %v", n, s.Err())
	}
}

func BenchmarkScannerLine(b *testing.B) {
	text := []byte(line)
	s := NewScanner(text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(text)
		scanLine(&s)
	}
	if err := s.End(); err != nil {
		b.Fatal(err)
	}
}

func TestAcceptTakesATokenThatIsNotJSON(t *testing.T) {
	s := NewScanner([]byte(`{"v": NaN,"w":1}`))
	for s.Object(); s.NextKey(); {
		if string(s.Key()) == "v" && !s.Accept("NaN") {
			t.Fatal("NaN was not accepted")
		} else if string(s.Key()) == "w" && (s.Accept("NaN") || s.Uint64() != 1) {
			t.Fatal("what follows was not left alone")
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	if s.Object(); s.Accept("") {
		t.Fatal("accepted after a fault")
	}
}
