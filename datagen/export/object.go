package export

import (
	"strconv"
	"time"

	"github.com/foldlog/foldlog/internal/serde"
)

// object appends nested JSON objects.
type object struct{ dst []byte }

func (o *object) open()  { o.dst = append(o.dst, '{') }
func (o *object) close() { o.dst = append(o.dst, '}') }

func (o *object) key(k string) {
	if o.dst[len(o.dst)-1] != '{' {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(serde.AppendString(o.dst, k), ':')
}

func (o *object) text(k, v string) {
	o.key(k)
	o.dst = serde.AppendString(o.dst, v)
}

func (o *object) optional(k, v string) {
	if v != "" {
		o.text(k, v)
	}
}

func (o *object) int(k string, v int64) {
	o.key(k)
	o.dst = strconv.AppendInt(o.dst, v, 10)
}

func (o *object) raw(k string, v []byte) {
	o.key(k)
	o.dst = append(o.dst, v...)
}

func (o *object) time(k string, t time.Time) {
	o.text(k, t.UTC().Format("2006-01-02T15:04:05.000000Z"))
}
