package wire

// SeriesQuery asks for the points of several runs and names.
type SeriesQuery struct {
	Runs   []string          `json:"runs" minItems:"1" maxItems:"1000" doc:"slugs"`
	Names  []string          `json:"names" minItems:"1" maxItems:"1000" doc:"metric names"`
	Where  map[string]string `json:"where,omitempty" doc:"what the metadata of a point must have"`
	Axis   string            `json:"axis,omitempty" enum:"step,time" doc:"what from and to are of; step if left out"`
	From   *Integer          `json:"from,omitempty" nullable:"true" doc:"only points from here on, a step or milliseconds"`
	To     *Integer          `json:"to,omitempty" nullable:"true" doc:"only points up to here"`
	Points int               `json:"points,omitempty" minimum:"0" maximum:"1000000" doc:"points per curve at most; 1000 if left out"`
	Newest bool              `json:"newest,omitempty" doc:"leave out copies of steps that a newer process has repeated"`
}

// SeriesAnswer has the points by column.
type SeriesAnswer struct {
	Runs    []RunSeries `json:"runs" doc:"in the order asked for"`
	Missing []string    `json:"missing" doc:"slugs of which there is no run"`
}

// RunSeries is the curves of one run.
type RunSeries struct {
	Slug     string       `json:"slug"`
	Cursor   string       `json:"cursor" doc:"where the live events of the run go on after these points"`
	Segments int          `json:"segments" doc:"processes"`
	Curves   []CurveJSON  `json:"curves" doc:"those of the names that the run has"`
	Stages   []StageStart `json:"stages" doc:"stage changes, in order"`
}

// StageStart is a stage of a run.
type StageStart struct {
	Stage   string  `json:"stage"`
	Step    Integer `json:"step"`
	TSMS    int64   `json:"ts_ms"`
	Segment int     `json:"segment"`
}

// CurveJSON is the points of one name in stream order.
type CurveJSON struct {
	Name    string     `json:"name"`
	Series  []Object   `json:"series" doc:"the metadata of the points, see spans"`
	Steps   Integers   `json:"steps"`
	Times   Integers   `json:"times" doc:"milliseconds of the Unix epoch"`
	Values  Numbers    `json:"values"`
	Spans   []SpanJSON `json:"spans" doc:"what the points from one index to the next have in common"`
	Total   Count      `json:"total" doc:"points that the query has"`
	Sampled bool       `json:"sampled" doc:"there are fewer here: the ends, and of each stretch the minimum, the maximum and the first that is not finite"`
}

// SpanJSON is neighbouring points that have their place in common.
type SpanJSON struct {
	At      int   `json:"at" doc:"index of the first point"`
	Segment int32 `json:"segment" doc:"index into the run's processes"`
	Series  int32 `json:"series" doc:"index into series"`
	Older   bool  `json:"older" doc:"copies that a newer process has repeated"`
}

// LivePoints is what has come to a run: the points by column, and everything else.
type LivePoints struct {
	Cursor      string       `json:"cursor" doc:"where to go on after this"`
	Curves      []CurveJSON  `json:"curves"`
	Annotations []Annotation `json:"annotations"`
	Opened      int          `json:"opened" doc:"how many processes have opened the run anew"`
	Done        bool         `json:"done" doc:"the run has ended"`
}
