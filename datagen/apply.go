package datagen

import "strconv"

// origin is where an event's content comes from.
func origin(e *Event) Origin {
	return Origin{Event: e.ID, Checkpoint: e.Checkpoint, Seq: e.Seq, Step: e.Step,
		Attempt: e.Attempt, Run: e.Run, Epoch: e.Epoch, Time: e.Time}
}

// apply changes the item by an event that is not at fault.
func (f *folding) apply(e *Event) {
	it := &f.item
	it.Run = e.Run
	switch e.Kind {
	case ItemCreated:
		f.begin(e)
	case FieldSet, FieldAppend:
		it.change(e)
	case StepCompleted:
		f.complete(e)
	case StepFailed:
		it.fail(e)
	case ItemEnded:
		m := momentOf(e)
		if f.ended = m.whole; m.failed {
			it.fail(e)
		}
	}
}

func (it *Item) fail(e *Event) {
	f := ItemFailure{From: origin(e)}
	if e.Failure != nil {
		f.Failure = *e.Failure
	}
	it.Failures = append(it.Failures, f)
}

// begin starts the item, anew if it is there already: what the run before made
// does not count, what failed is remembered.
func (f *folding) begin(e *Event) {
	it := &f.item
	it.Creations++
	it.Tags = e.Tags
	it.Fields, it.Steps, it.Cursor = nil, nil, nil
	clear(it.fields)
	clear(it.done)
	f.began, f.ended, f.frames = true, false, nil
	it.created = e.Seq
}

// change sets a field or appends to it.
func (it *Item) change(e *Event) {
	i, ok := it.fields[e.Field.Name]
	if !ok {
		i = len(it.Fields)
		it.fields[e.Field.Name] = i
		it.Fields = append(it.Fields, FieldState{Name: e.Field.Name})
	}
	state := &it.Fields[i]
	value := FieldValue{Value: e.Field.Value, Type: e.Field.Type, Codec: e.Field.Codec, From: origin(e)}
	if state.Appended = e.Kind == FieldAppend; state.Appended {
		state.Values = append(state.Values, value)
		return
	}
	state.Values = []FieldValue{value}
}

// complete moves the cursor.
func (f *folding) complete(e *Event) {
	it := &f.item
	done := StepDone{Step: *e.Step, From: origin(e)}
	if done.Instance == "" {
		done.Instance = f.instance(e)
	}
	at := len(it.Steps)
	it.Steps = append(it.Steps, done)
	cursor := done.Step
	it.Cursor = &cursor
	it.done[stepKey{done.Instance, -1}] = at
	if done.Iteration != nil {
		it.done[stepKey{done.Instance, *done.Iteration}] = at
	}
}

// instance tells executions apart where the schema does not: by the enclosing
// step, the step, and from the second on the count.
func (f *folding) instance(e *Event) string {
	name := e.Step.Name
	if e.Frame != nil && e.Frame.EnclosingStep != "" {
		name = e.Frame.EnclosingStep + "/" + name
	}
	if f.frames == nil {
		f.frames = map[string]int64{}
	}
	f.frames[name]++
	if n := f.frames[name]; n > 1 {
		name += "#" + strconv.FormatInt(n-1, 10)
	}
	return name
}
