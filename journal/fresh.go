package journal

// view is what others than the writer's goroutine may know of where it stands.
type view struct {
	// settled is the head up to which the machine holds everything.
	settled Head
	// next is the head that is being published on top of settled, nil without.
	// Nobody has been told of it yet.
	next *Head
}

// show tells others where the writer stands; the machine must be there already.
func (w *Writer) show(next *Head) {
	if w.reader.snap.legacy() || !w.reader.atHead() {
		w.hide()
		return
	}
	w.view.Store(&view{settled: w.reader.snap.head, next: next})
}

// hide leaves the answer to the writer's goroutine.
func (w *Writer) hide() { w.view.Store(nil) }

// fresh tells whether the machine holds everything that anybody has been told is
// published. It costs a look at the head, and waits for nobody: neither for the
// lease nor for the group that is being published, whose callers wait as well.
// False means that it is not known.
func (w *Writer) fresh() bool {
	if w.view.Load() == nil {
		return false
	}
	snap, err := w.l.readHead()
	if err != nil || !snap.sameJournal(&snapshot{header: w.header}) {
		return false
	}
	// What is shown is looked up after the head was read: by then a group of our
	// own that the head names is known, as the one to come or as settled.
	v := w.view.Load()
	return v != nil && (v.settled.same(snap.head) || v.next != nil && v.next.same(snap.head))
}
