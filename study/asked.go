package study

import (
	"encoding/binary"
	"strings"
)

// AskKeyAttr is the attribute of a trial that holds, as a JSON string, the key with
// which it was asked for.
const AskKeyAttr = SystemPrefix + "ask-key"

// AskedFor is the first trial of a study whose [AskKeyAttr] is that JSON value, as it
// is stored, nil if there is none. It takes no longer where there are many trials.
func (s *Snapshot) AskedFor(study StudyID, value []byte) *Trial {
	st, err := s.st.study(study)
	if err != nil {
		return nil
	}
	from := askedKey(value, 0)
	key, id, ok := st.asked.ceiling(from)
	if !ok || !strings.HasPrefix(key, from[:len(value)+1]) {
		return nil
	}
	return s.st.trials.at(int(id))
}

// askedKey orders trials by the value and then by their numbers. No JSON has a NUL.
func askedKey(value []byte, number uint64) string {
	b := make([]byte, 0, len(value)+9)
	b = append(append(b, value...), 0)
	return string(binary.BigEndian.AppendUint64(b, number))
}

// setAttr sets an attribute of a trial that is being edited.
func (st *state) setAttr(t *Trial, key string, value []byte, env *envelope) {
	if key == AskKeyAttr {
		s := st.editStudy(st.studies.at(int(t.Study)))
		if old, ok := t.attrs.get(key); ok {
			s.asked.delete(st.stamp, askedKey(old.Value, t.Number))
		}
		s.asked.set(st.stamp, askedKey(value, t.Number), t.ID)
	}
	t.attrs.set(st.stamp, key, newAttr(key, value, env))
}
