package optuna

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/foldlog/foldlog/study"
)

// Lists have tens of thousands of trials, and every trial five maps. So trials are
// spelled as a message's bytes at once, without the maps.

// Fields of the message Trial.
const (
	fieldID protowire.Number = iota + 1
	fieldNumber
	fieldState
	fieldValues
	fieldStart
	fieldComplete
	fieldParams
	fieldDists
	fieldUserAttrs
	fieldSystemAttrs
	fieldCurve
)

// fieldTrials is the field of trials in GetTrialsReply, and that of the trial in
// GetTrialReply.
const fieldTrials protowire.Number = 1

// portion is how many trials are spelled by one goroutine at a time.
const portion = 1024

// fill makes the trials the content of a reply: the bytes are taken over as they
// are when the message is spelled.
func fill(reply proto.Message, trials ...*study.Trial) {
	portions := slices.Collect(slices.Chunk(trials, portion))
	spelled := make([][]byte, len(portions))
	var next atomic.Int64
	var rest sync.WaitGroup
	work := func() {
		v := newViewer()
		for i := next.Add(1) - 1; i < int64(len(portions)); i = next.Add(1) - 1 {
			spelled[i] = v.appendTrials(nil, portions[i])
		}
	}
	for range min(len(portions), runtime.GOMAXPROCS(0)) - 1 {
		rest.Go(work)
	}
	work()
	rest.Wait()
	if len(spelled) == 1 {
		reply.ProtoReflect().SetUnknown(spelled[0])
		return
	}
	reply.ProtoReflect().SetUnknown(slices.Concat(spelled...))
}

// sample is how many trials tell how long a list will be.
const sample = 16

// appendTrials spells trials as the content of a reply.
func (v *viewer) appendTrials(b []byte, trials []*study.Trial) []byte {
	var one []byte
	for i, t := range trials {
		if i == sample {
			b = slices.Grow(b, len(b)/sample*(len(trials)-i)*9/8)
		}
		one = v.appendTrial(one[:0], t)
		b = appendMessage(b, fieldTrials, one)
	}
	return b
}

// appendTrial spells a trial as a message of the type Trial.
func (v *viewer) appendTrial(b []byte, t *study.Trial) []byte {
	b = appendInt(b, fieldID, int64(t.ID))
	b = appendInt(b, fieldNumber, int64(t.Number))
	b = appendInt(b, fieldState, int64(stateNumbers[stateOf(t)]))
	b = appendFloats(b, fieldValues, valuesOf(t))
	b = appendMoment(b, fieldStart, startOf(t))
	b = appendMoment(b, fieldComplete, completeOf(t))
	for i, p := range t.Params {
		text := v.shortDist(i, p.Dist)
		if x, ok := toInternal(p.Value); ok && text != "" {
			b = appendFloatEntry(b, fieldParams, p.Name, x)
			b = appendTextEntry(b, fieldDists, p.Name, text)
		}
	}
	v.points = appendPoints(v.points[:0], t)
	for _, p := range v.points {
		b = appendPoint(b, p)
	}
	return appendAttrs(b, t)
}

func appendAttrs(b []byte, t *study.Trial) []byte {
	user, system := attrMaps(t.Attrs())
	for _, key := range sortedKeys(user) {
		b = appendTextEntry(b, fieldUserAttrs, key, user[key])
	}
	for _, key := range sortedKeys(system) {
		b = appendTextEntry(b, fieldSystemAttrs, key, system[key])
	}
	return b
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

func appendInt(b []byte, field protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

// appendMoment is the text of a time, whose length is that of its layout.
func appendMoment(b []byte, field protowire.Number, m moment) []byte {
	if !m.known {
		return b
	}
	at := time.UnixMicro(m.micros).In(zone)
	if y := at.Year(); y < 0 || y > 9999 {
		return appendText(b, field, m.local(wireLayout))
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(len(wireLayout)))
	return at.AppendFormat(b, wireLayout)
}

func appendFloats(b []byte, field protowire.Number, values []float64) []byte {
	if len(values) == 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(8*len(values)))
	for _, x := range values {
		b = protowire.AppendFixed64(b, math.Float64bits(x))
	}
	return b
}

// Keys and values of maps.
const (
	fieldKey   protowire.Number = 1
	fieldValue protowire.Number = 2
)

// appendEntry begins an entry of a map, of so many bytes.
func appendEntry(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

func textSize(text string) int { return 1 + protowire.SizeBytes(len(text)) }

// floatSize is the size of a field that is a float.
const floatSize = 1 + 8

func appendFloat(b []byte, field protowire.Number, x float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(x))
}

func appendFloatEntry(b []byte, field protowire.Number, key string, x float64) []byte {
	b = appendEntry(b, field, textSize(key)+floatSize)
	b = protowire.AppendString(protowire.AppendTag(b, fieldKey, protowire.BytesType), key)
	return appendFloat(b, fieldValue, x)
}

func appendTextEntry(b []byte, field protowire.Number, key, text string) []byte {
	b = appendEntry(b, field, textSize(key)+textSize(text))
	b = protowire.AppendString(protowire.AppendTag(b, fieldKey, protowire.BytesType), key)
	return protowire.AppendString(protowire.AppendTag(b, fieldValue, protowire.BytesType), text)
}

func appendPoint(b []byte, p point) []byte {
	b = appendEntry(b, fieldCurve, 1+protowire.SizeVarint(uint64(p.step))+floatSize)
	b = protowire.AppendVarint(protowire.AppendTag(b, fieldKey, protowire.VarintType), uint64(p.step))
	return appendFloat(b, fieldValue, p.value)
}
