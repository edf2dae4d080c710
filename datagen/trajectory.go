package datagen

// Checkpoint is one batch of an item as it changed the item.
type Checkpoint struct {
	ID string
	// Seq is the sequence of its last event, Events are how many it has.
	Seq    int64
	Events int
	// Step is what was completed, nil if nothing was.
	Step *Step
	// From is its last event.
	From Origin
	// Created says that it begins the item, or begins it anew.
	Created bool
	// Changes are the changes of fields, in order.
	Changes []Delta
	// Failure is what went wrong in it, End how it ended the item.
	Failure *Failure
	End     End
	// Faults are those of its events; then it changed nothing.
	Faults []Fault
}

// Delta is the change of a field.
type Delta struct {
	Name   string
	Append bool
	// Old is what was there before: nil for a new field, else the value that was
	// set or the last that was appended.
	Old *FieldValue
	New FieldValue
}

// Trajectory tells an item's events, which may come in any order, as the row of
// its checkpoints.
func Trajectory(events []Event) []Checkpoint {
	var f Folder
	f.Add(events...)
	all := f.Events()
	faults := map[string][]Fault{}
	if it := f.Item(); it != nil {
		byEvent := map[string]string{}
		for i := range all {
			byEvent[all[i].ID] = all[i].Checkpoint
		}
		for _, t := range it.Faults {
			for _, c := range checkpointsOf(t, byEvent) {
				faults[c] = append(faults[c], t)
			}
		}
	}
	t := trajectory{last: map[string]FieldValue{}}
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].Checkpoint == all[i].Checkpoint {
			j++
		}
		t.checkpoint(all[i:j], faults[all[i].Checkpoint])
		i = j
	}
	return t.row
}

// checkpointsOf are the checkpoints of a fault's events, each once.
func checkpointsOf(t Fault, byEvent map[string]string) []string {
	var out []string
	seen := map[string]bool{}
	for _, id := range t.Events {
		if c := byEvent[id]; !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out
}

// trajectory is the row so far and the last value of every field.
type trajectory struct {
	row  []Checkpoint
	last map[string]FieldValue
}

func (t *trajectory) checkpoint(events []Event, faults []Fault) {
	end := &events[len(events)-1]
	c := Checkpoint{ID: end.Checkpoint, Seq: end.Seq, Events: len(events), From: origin(end), Faults: faults}
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case ItemCreated:
			c.Created = true
			clear(t.last)
		case FieldSet, FieldAppend:
			if len(faults) == 0 && e.Field != nil {
				c.Changes = append(c.Changes, t.change(e))
			}
		case StepCompleted:
			c.Step = e.Step
		case StepFailed:
			c.Failure = e.Failure
		case ItemEnded:
			c.End = e.End
		}
	}
	t.row = append(t.row, c)
}

func (t *trajectory) change(e *Event) Delta {
	d := Delta{Name: e.Field.Name, Append: e.Kind == FieldAppend,
		New: FieldValue{Value: e.Field.Value, Type: e.Field.Type, Codec: e.Field.Codec, From: origin(e)}}
	if old, ok := t.last[d.Name]; ok {
		d.Old = &old
	}
	t.last[d.Name] = d.New
	return d
}
