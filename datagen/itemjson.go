package datagen

import "github.com/foldlog/foldlog/internal/serde"

// AppendFields appends the item's fields as a JSON object, in the order in which
// they first appeared: what was set as AppendValue spells it, what was appended as an
// array.
func (it *Item) AppendFields(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range it.Fields {
		f := &it.Fields[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(serde.AppendString(dst, f.Name), ':')
		if !f.Appended {
			dst = AppendValue(dst, &f.Values[0].Value)
			continue
		}
		dst = append(dst, '[')
		for k := range f.Values {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = AppendValue(dst, &f.Values[k].Value)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}
