package study

import (
	"github.com/foldlog/foldlog/internal/serde"
)

var (
	outboxAdvanceFields  = opFields("key", "phase", "sampler_state?", "scheduler_state?", "effects")
	effectCompleteFields = opFields("key")
	replacementFields    = opFields("effect", "study", "trial", "number", "template?", "attempt", "retry_of?")
)

func (d *Decoder) outboxAdvance(kindSeen bool) Op {
	op := &d.ops.advance
	*op = OutboxAdvance{}
	t := track(outboxAdvanceFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Key = readEntryKey(d.s.Raw())
		case 1:
			op.Phase, op.PhaseRaw = readPhase(d.s.Raw())
		case 2:
			op.SamplerState = d.optBlob()
		case 3:
			op.SchedulerState = d.optBlob()
		case 4:
			op.Effects, op.EffectsRaw = readEffects(d.s.Raw())
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) effectComplete(kindSeen bool) Op {
	op := new(OutboxEffectComplete)
	t := track(effectCompleteFields, kindSeen)
	for t.next(d) {
		op.Key = readEffectKey(d.s.Raw())
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) replacement(kindSeen bool) Op {
	op := new(OutboxReplacement)
	t := track(replacementFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Effect = readEffectKey(d.s.Raw())
		case 1:
			op.Study = StudyID(d.s.Uint64())
		case 2:
			op.Trial = d.trialID()
		case 3:
			op.Number = d.s.Uint64()
		case 4:
			op.Template = d.template()
		case 5:
			op.Attempt = readAttempt(d.s.Raw())
		case 6:
			op.RetryOf = d.optTrial()
		}
	}
	op.Extra = t.extra
	return op
}

// readEntryKey and the others keep what is not our shape verbatim; raw is
// empty only after a fault of the outer scanner.
func readEntryKey(raw []byte) EntryKey {
	k, ok := readKey(raw, 2)
	if !ok {
		return EntryKey{Raw: string(raw)}
	}
	return k.Entry()
}

func readEffectKey(raw []byte) EffectKey {
	k, ok := readKey(raw, 3)
	if !ok {
		return EffectKey{Raw: string(raw)}
	}
	return k
}

// readKey reads an effect's key, or an entry's, which has one field less.
func readKey(raw []byte, fields uint) (key EffectKey, ok bool) {
	s := serde.NewScanner(raw)
	var k known
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "trial":
			k.saw(0)
			key.Trial = TrialID(s.Uint64())
		case "epoch":
			k.saw(1)
			key.Epoch = s.Uint64()
		case "effect":
			k.saw(2)
			key.Effect = s.String()
		default:
			k.extra++
			s.Skip()
		}
	}
	return key, s.End() == nil && k.exactly(fields)
}

func readPhase(raw []byte) (Phase, string) {
	s := serde.NewScanner(raw)
	name := string(s.Bytes())
	if s.End() == nil {
		for p := PhaseSampler; p <= PhaseEffects; p++ {
			if name == p.String() {
				return p, ""
			}
		}
	}
	return PhaseOther, string(raw)
}

func readEffects(raw []byte) (fx []Effect, other []byte) {
	s := serde.NewScanner(raw)
	for s.Array(); s.NextElem(); {
		fx = append(fx, readEffect(s.Raw()))
	}
	if s.End() != nil {
		return nil, raw
	}
	return fx, nil
}

func readEffect(raw []byte) (f Effect) {
	s := serde.NewScanner(raw)
	var k known
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "name":
			k.saw(0)
			f.Name = s.String()
		case "payload":
			k.saw(1)
			f.Payload = s.Raw()
		case "retry":
			k.saw(1)
			a := readAttempt(s.Raw())
			f.Retry = &a
		default:
			k.extra++
			s.Skip()
		}
	}
	if s.End() != nil || !k.exactly(2) {
		return Effect{Raw: raw}
	}
	return f
}
