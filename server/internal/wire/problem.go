package wire

// Problem is an error as every answer spells it (RFC 9457).
type Problem struct {
	Type   string `json:"type" doc:"about:blank: the status says it all" example:"about:blank"`
	Title  string `json:"title" doc:"the status in words"`
	Status int    `json:"status"`
	Detail string `json:"detail" doc:"what is wrong with this request"`
	// Expected is of the stream protocol's conflicts.
	Expected *int64 `json:"expected,omitempty" doc:"of a conflict in the stream protocol: the end of the stream at the server, in bytes"`
	// Errors has each fault of a request that does not fit its schema.
	Errors []ProblemPart `json:"errors,omitempty" doc:"each fault of a request that is not as described here"`
}

// ProblemPart is one fault of a request.
type ProblemPart struct {
	Location string `json:"location,omitempty" doc:"where, such as query.limit"`
	Message  string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }
