package wire

// RunItem is a run in a list: what its digest says, without reading a point.
type RunItem struct {
	Slug        string    `json:"slug" doc:"names the run"`
	Description string    `json:"description"`
	Status      string    `json:"status" enum:"running,done,failed" doc:"a killed run stays running: look at lost and last_ms"`
	Lost        string    `json:"lost" doc:"of a running run: why it will say no more, as the study tells whose trial it was kept of, which has failed without a word of the run since; empty if nothing tells that"`
	Interrupted string    `json:"interrupted" doc:"the signal that stopped the newest process, empty if none did"`
	Failure     string    `json:"failure" doc:"why the newest process failed, cut to 300 characters"`
	Stage       string    `json:"stage" doc:"the newest stage"`
	FirstMS     int64     `json:"first_ms" doc:"time of the first event"`
	OpenedMS    int64     `json:"opened_ms" doc:"time of the newest open"`
	LastMS      int64     `json:"last_ms" doc:"time of the last event"`
	LastStep    Integer   `json:"last_step" doc:"of the last event that has one, a metric or an annotation"`
	Segments    int       `json:"segments" doc:"processes that wrote it"`
	Checkpoints int       `json:"checkpoints"`
	Annotations int       `json:"annotations"`
	Streams     int       `json:"streams" doc:"files"`
	Names       int       `json:"names" doc:"metric names"`
	Events      Count     `json:"events"`
	Points      Count     `json:"points"`
	BadLines    Count     `json:"bad_lines" doc:"lines that are no events"`
	Bytes       Count     `json:"bytes"`
	Tags        []string  `json:"tags"`
	Noted       bool      `json:"noted" doc:"there is a note"`
	Metadata    Object    `json:"metadata" doc:"the keys that were asked for, by their paths"`
	Metrics     []RunStat `json:"metrics" doc:"the names that were asked for and that the run has"`
}

// RunStat sums up the points of one name.
type RunStat struct {
	Name      string  `json:"name"`
	Count     Count   `json:"count"`
	NonFinite Count   `json:"non_finite"`
	Last      Number  `json:"last"`
	LastStep  Integer `json:"last_step"`
	Min       *Number `json:"min" nullable:"true" doc:"over the finite points, null without any"`
	Max       *Number `json:"max" nullable:"true"`
}

// RunDetail is one run.
type RunDetail struct {
	RunItem
	Note        string       `json:"note" doc:"text, never markup"`
	NoteMS      int64        `json:"note_ms"`
	NoteBy      string       `json:"note_by"`
	Open        Object       `json:"open" doc:"the whole metadata of the newest open: the identity of the run"`
	Processes   []RunProcess `json:"processes" doc:"one for each open, in order: what series and annotations call a segment"`
	StreamFiles []RunStream  `json:"stream_files"`
	Curves      []RunStat    `json:"curves" doc:"every metric name"`
	LeftOut     RunLeftOut   `json:"left_out"`
}

// RunLeftOut counts what is in the files of a run and beyond what the server keeps of
// one; docs/http-api.md has the limits.
type RunLeftOut struct {
	Points      Count `json:"points" doc:"of metric names that are too many"`
	Metadata    Count `json:"metadata" doc:"points that are shown without their metadata, since their name has too many different"`
	Annotations Count `json:"annotations"`
	Processes   Count `json:"processes" doc:"that count as one with those before"`
}

// RunStream is one file of a run.
type RunStream struct {
	ID       string `json:"id"`
	Path     string `json:"path" doc:"under the root"`
	Bytes    Count  `json:"bytes" doc:"of whole lines"`
	BadLines Count  `json:"bad_lines"`
}

// RunProcess is what one process wrote: from its open to the next.
type RunProcess struct {
	Stream      string      `json:"stream" doc:"id of the file"`
	FirstMS     int64       `json:"first_ms"`
	LastMS      int64       `json:"last_ms"`
	FirstStep   Integer     `json:"first_step"`
	LastStep    Integer     `json:"last_step"`
	Points      Count       `json:"points"`
	Resumed     string      `json:"resumed" doc:"the checkpoint it continued from, empty if it did not say"`
	Interrupted string      `json:"interrupted" doc:"the signal that stopped it"`
	Done        bool        `json:"done"`
	Failed      bool        `json:"failed"`
	Changes     []RunChange `json:"changes" doc:"how its open differs from the one before in its file"`
}

// RunChange is one difference of two metadata.
type RunChange struct {
	Path string `json:"path" doc:"keys of objects inside joined with a slash"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Annotation is one annotation of a run.
type Annotation struct {
	TSMS       int64    `json:"ts_ms"`
	Step       Integer  `json:"step"`
	Segment    int      `json:"segment" doc:"index into the run's processes"`
	Class      string   `json:"class" enum:"other,lowering,memory plan,memory retry,memory peak,stacking,stage,checkpoint,resumed,interrupted,failed"`
	Text       string   `json:"text" doc:"text, never markup"`
	Metadata   Object   `json:"metadata"`
	From       string   `json:"from" doc:"of a stage"`
	To         string   `json:"to" doc:"of a stage"`
	Checkpoint string   `json:"checkpoint" doc:"of a checkpoint or resume"`
	Seconds    Number   `json:"seconds" doc:"of a checkpoint: how long writing took"`
	Changed    []string `json:"changed" doc:"of a resume"`
	Signal     string   `json:"signal" doc:"of an interruption"`
	Error      string   `json:"error" doc:"of a failure"`
}

// AnnotationPage is a part of a run's annotations.
type AnnotationPage struct {
	Items []Annotation `json:"items" doc:"in stream order, or against it with newest"`
	Next  string       `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int          `json:"total" doc:"annotations of these classes"`
}

// Labels are a run's tags and note.
type Labels struct {
	Tags []string `json:"tags" doc:"sorted"`
	Note string   `json:"note" doc:"text, never markup"`
	// NoteMS and NoteBy say when the note was written, and by whom.
	NoteMS int64  `json:"note_ms"`
	NoteBy string `json:"note_by" doc:"the name of the token, empty without"`
}

// RunPage is a part of the list of runs.
type RunPage struct {
	Items []RunItem `json:"items"`
	Next  string    `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int       `json:"total" doc:"runs that match"`
}

// NamePage is a part of the catalogue of metric names.
type NamePage struct {
	Items []NameItem `json:"items" doc:"by name"`
	Next  string     `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int        `json:"total"`
}

// NameItem is one metric name, or one path in the open metadata.
type NameItem struct {
	Name string `json:"name"`
	Runs int    `json:"runs" doc:"that have it"`
}

// DiffAnswer is a table of metadata: a row for each path, a column for each run.
type DiffAnswer struct {
	Runs    []string  `json:"runs" doc:"the columns"`
	Missing []string  `json:"missing" doc:"slugs of which there is no run"`
	Rows    []DiffRow `json:"rows" doc:"by path; a source is sources/ and its path, with its hash"`
}

// DiffRow is one path.
type DiffRow struct {
	Path   string   `json:"path"`
	Same   bool     `json:"same" doc:"all runs have the same"`
	Has    []bool   `json:"has" doc:"whether each run has it"`
	Values []string `json:"values" doc:"one for each run, for people: a text without its quotes, anything else as JSON"`
}
