package pipefile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

// expr is a condition on an item, such as
//
//	confidence >= 0.9 and not (label == null or iteration > 3)
//
// A name is the value of a field, null if it is not set; "iteration" is the round
// of the loop around; a dot goes into JSON objects. There are numbers, texts in
// quotes, true, false and null, the comparisons == != < <= > >=, and, or, not,
// and parentheses. Numbers compare as numbers; == between different kinds is
// false, an order between them an error.
type expr func(s *pipeline.State) (any, error)

// maxExprDepth bounds the nesting of parentheses and nots.
const maxExprDepth = 100

// exprError is where an expression is wrong, in bytes from its start.
type exprError struct {
	offset int
	what   string
}

func (e *exprError) Error() string { return e.what }

// parseCond makes a condition of a text.
func parseCond(text string) (pipeline.Cond, error) {
	p := &exprParser{text: text}
	p.advance()
	e := p.or(0)
	if p.err == nil && p.token != "" {
		p.fail("%q is not expected here", p.token)
	}
	if p.err != nil {
		return nil, p.err
	}
	return func(s *pipeline.State) (bool, error) {
		v, err := e(s)
		if err != nil {
			return false, err
		}
		yes, ok := v.(bool)
		if !ok {
			return false, fmt.Errorf("%s is %s, neither true nor false", text, kindOf(v))
		}
		return yes, nil
	}, nil
}

type exprParser struct {
	text  string
	pos   int // behind the token
	at    int // of the token
	token string
	err   *exprError
}

func (p *exprParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &exprError{p.at, fmt.Sprintf(format, args...)}
	}
	p.token, p.pos = "", len(p.text)
}

// advance reads the next token; "" is the end.
func (p *exprParser) advance() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
	p.at = p.pos
	rest := p.text[p.pos:]
	n := 0
	switch {
	case rest == "":
	case rest[0] == '"' || rest[0] == '\'':
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			p.fail("the text has no end")
			return
		}
		n = end + 2
	case strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "!=") || strings.HasPrefix(rest, "<=") || strings.HasPrefix(rest, ">="):
		n = 2
	case strings.IndexByte("<>()", rest[0]) >= 0:
		n = 1
	default:
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
		if n == 0 {
			p.fail("%q is not expected here", rest[:1])
			return
		}
	}
	p.token = rest[:n]
	p.pos += n
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-+/", c) >= 0 || c >= 0x80
}

func (p *exprParser) accept(token string) bool {
	if p.token != token {
		return false
	}
	p.advance()
	return true
}

func (p *exprParser) or(depth int) expr {
	left := p.and(depth)
	for p.err == nil && p.accept("or") {
		left = either(left, p.and(depth), true)
	}
	return left
}

func (p *exprParser) and(depth int) expr {
	left := p.not(depth)
	for p.err == nil && p.accept("and") {
		left = either(left, p.not(depth), false)
	}
	return left
}

// either is "or" if the left decides by being true, else "and".
func either(left, right expr, decides bool) expr {
	return func(s *pipeline.State) (any, error) {
		l, err := truth(left, s)
		if err != nil || l == decides {
			return l, err
		}
		return truth(right, s)
	}
}

func truth(e expr, s *pipeline.State) (bool, error) {
	v, err := e(s)
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s is neither true nor false", kindOf(v))
	}
	return yes, nil
}

func (p *exprParser) not(depth int) expr {
	if depth > maxExprDepth {
		p.fail("nested too deep")
		return nil
	}
	if !p.accept("not") {
		return p.compare(depth)
	}
	inner := p.not(depth + 1)
	return func(s *pipeline.State) (any, error) {
		yes, err := truth(inner, s)
		return !yes, err
	}
}

func (p *exprParser) compare(depth int) expr {
	left := p.operand(depth)
	op := p.token
	switch op {
	case "==", "!=", "<", "<=", ">", ">=":
	default:
		return left
	}
	p.advance()
	right := p.operand(depth)
	return func(s *pipeline.State) (any, error) {
		l, err := left(s)
		if err != nil {
			return nil, err
		}
		r, err := right(s)
		if err != nil {
			return nil, err
		}
		return compareValues(op, l, r)
	}
}

func (p *exprParser) operand(depth int) expr {
	token := p.token
	switch {
	case token == "":
		p.fail("something is missing")
		return nil
	case p.accept("("):
		inner := p.or(depth + 1)
		if p.err == nil && !p.accept(")") {
			p.fail("a ) is missing")
		}
		return inner
	case token[0] == '"' || token[0] == '\'':
		p.advance()
		return constant(token[1 : len(token)-1])
	case token == "true" || token == "false":
		p.advance()
		return constant(token == "true")
	case token == "null":
		p.advance()
		return constant(nil)
	case token == "and" || token == "or" || strings.IndexByte("=!<>)", token[0]) >= 0:
		p.fail("%q is not expected here", token)
		return nil
	case token[0] >= '0' && token[0] <= '9' || strings.IndexByte("+-.", token[0]) >= 0:
		v, ok := parseNumber(token)
		if !ok {
			p.fail("%q is not a number", token)
		}
		p.advance()
		return constant(v)
	}
	p.advance()
	return field(token)
}

func parseNumber(token string) (any, bool) {
	if i, err := strconv.ParseInt(token, 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(token, 64)
	return f, err == nil
}

func constant(v any) expr { return func(*pipeline.State) (any, error) { return v, nil } }

// field looks a whole name up before it takes it apart at its dots.
func field(name string) expr {
	return func(s *pipeline.State) (any, error) {
		if name == "iteration" && s.Iteration >= 0 {
			return s.Iteration, nil
		}
		first, path := name, ""
		for {
			if v, ok := s.Value(first); ok {
				return into(plain(v), path), nil
			}
			dot := strings.LastIndexByte(first, '.')
			if dot < 0 {
				return nil, nil
			}
			first, path = name[:dot], name[dot+1:]
		}
	}
}

// into follows keys into objects; what is not there is null.
func into(v any, path string) any {
	for path != "" {
		key, rest, _ := strings.Cut(path, ".")
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v, path = object[key], rest
	}
	if n, ok := v.(json.Number); ok {
		v, _ = parseNumber(string(n))
	}
	return v
}

// plain is a value of the log as expressions see it.
func plain(v datagen.Value) any {
	switch v.Kind {
	case datagen.Int:
		return v.Int
	case datagen.Float:
		return v.Float
	case datagen.Bool:
		return v.Bool
	case datagen.Str:
		return v.Str
	case datagen.JSON:
		var any any
		dec := json.NewDecoder(strings.NewReader(string(v.JSON)))
		dec.UseNumber()
		if dec.Decode(&any) == nil {
			return into(any, "")
		}
		return nil
	}
	return v.Blob
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a truth value"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case datagen.BlobRef:
		return "a blob"
	}
	return "JSON"
}

func compareValues(op string, l, r any) (bool, error) {
	order, same := 0, false
	switch kl, kr := kindOf(l), kindOf(r); {
	case kl != kr:
	case kl == "a number":
		li, lInt := l.(int64)
		ri, rInt := r.(int64)
		if lInt && rInt {
			order = cmp.Compare(li, ri)
			same = true
			break
		}
		lf, rf := asFloat(l), asFloat(r)
		if lf != lf || rf != rf {
			return op == "!=", nil // NaN has no order and no equal
		}
		order, same = cmp.Compare(lf, rf), true
	case kl == "a text":
		order, same = strings.Compare(l.(string), r.(string)), true
	case op == "==" || op == "!=":
		equal := false
		switch l.(type) {
		case nil:
			equal = true
		case bool, datagen.BlobRef:
			equal = fmt.Sprint(l) == fmt.Sprint(r)
		default:
			a, _ := json.Marshal(l)
			b, _ := json.Marshal(r)
			equal = string(a) == string(b)
		}
		return equal == (op == "=="), nil
	}
	switch {
	case op == "==":
		return same && order == 0, nil
	case op == "!=":
		return !same || order != 0, nil
	case !same && (l == nil) != (r == nil):
		return false, fmt.Errorf("%s and %s have no order (%s); a field that is not set is null", kindOf(l), kindOf(r), op)
	case !same:
		return false, fmt.Errorf("%s and %s have no order (%s)", kindOf(l), kindOf(r), op)
	}
	return op == "<" && order < 0 || op == "<=" && order <= 0 || op == ">" && order > 0 || op == ">=" && order >= 0, nil
}

func asFloat(v any) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	f, _ := v.(float64)
	return f
}
