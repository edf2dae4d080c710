package wire

// Overview is what is in the root.
type Overview struct {
	Version  string    `json:"version"`
	Runs     RunCounts `json:"runs"`
	Studies  int       `json:"studies"`
	Journals int       `json:"journals"`
	Datagen  int       `json:"datagen" doc:"experiments"`
	Waiting  int       `json:"waiting" doc:"streams that have not been read to their end yet"`
	Alive    []RunItem `json:"alive" doc:"runs that have said something within ten minutes and have neither ended nor been interrupted nor are lost, the newest 100"`
}

// RunCounts is runs by status.
type RunCounts struct {
	Total   int `json:"total"`
	Running int `json:"running"`
	Lost    int `json:"lost" doc:"of those running: that will say no more"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
}

// SessionInfo says who the caller is.
type SessionInfo struct {
	Open   bool     `json:"open" doc:"the server asks for no tokens"`
	ID     string   `json:"id" doc:"of the token, empty without"`
	Name   string   `json:"name" doc:"of the token"`
	Scopes []string `json:"scopes" doc:"what the token may do"`
}

// LogItem is a log in the list of all of them; the last line has End alone.
type LogItem struct {
	Path string `json:"path,omitempty" doc:"under the root"`
	Kind string `json:"kind,omitempty" doc:"metrics stream, study journal, datagen log or lance dataset"`
	// What follows is of streams.
	Bytes      int64  `json:"bytes,omitempty" doc:"of a stream"`
	ModifiedMS int64  `json:"modified_ms,omitempty" doc:"when a stream was last written to"`
	Slug       string `json:"slug,omitempty" doc:"of a stream's run"`
	Step       int64  `json:"step,omitempty" doc:"of a stream's last event that has one, a metric or an annotation"`
	Stepped    bool   `json:"stepped,omitempty" doc:"such has come since the newest open of a stream"`
	Points     int64  `json:"points,omitempty" doc:"of a stream"`
	Ended      bool   `json:"ended,omitempty" doc:"a stream's process has said that it ended"`
	Failure    string `json:"failure,omitempty" doc:"why a stream's newest process failed, if it has said so"`
	Signal     string `json:"signal,omitempty" doc:"that interrupted a stream's newest process, if it has said so"`
	End        bool   `json:"end,omitempty" doc:"of the last line: without it some are missing"`
	Waiting    int64  `json:"waiting,omitempty" doc:"of the last line: so many streams have not been read to their end yet"`
}

// FileLine is an entry of a directory; the last line has End alone.
type FileLine struct {
	Name     string `json:"name,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Modified string `json:"modified,omitempty" doc:"RFC 3339"`
	Dir      bool   `json:"dir,omitempty" doc:"it is a directory"`
	End      bool   `json:"end,omitempty" doc:"of the last line: without it some are missing"`
}

// ObjectLine is an object in a listing; the last line has End alone.
type ObjectLine struct {
	Key      string `json:"key,omitempty" doc:"path under the root; with a slash at its end what is below it"`
	Size     int64  `json:"size,omitempty"`
	Modified string `json:"modified,omitempty" doc:"RFC 3339"`
	End      bool   `json:"end,omitempty" doc:"of the last line: without it some are missing"`
}
