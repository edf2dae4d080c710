package wire

// StudyItem is a study in a list.
type StudyItem struct {
	ID         string      `json:"id" doc:"names the study in this API"`
	Journal    string      `json:"journal" doc:"path of its journal under the root"`
	StudyID    Count       `json:"study_id" doc:"within the journal"`
	Name       string      `json:"name"`
	Directions []string    `json:"directions" doc:"minimize or maximize, one for each objective"`
	Metrics    []string    `json:"metrics" doc:"names of the objectives"`
	Unit       string      `json:"unit" doc:"what steps count, empty if it is not said"`
	Seed       *Count      `json:"seed" nullable:"true"`
	CreatedMS  int64       `json:"created_ms"`
	LastMS     int64       `json:"last_ms" doc:"the last sign of life of any trial"`
	Seq        Count       `json:"seq" doc:"operations in the journal as of this answer"`
	Trials     int         `json:"trials"`
	States     StateCounts `json:"states"`
	Best       *BestTrial  `json:"best,omitempty" doc:"of a study with one objective that has one; of several see the front"`
	Sampler    string      `json:"sampler"`
	Pruner     string      `json:"pruner"`
}

// StateCounts is the number of trials in every state.
type StateCounts struct {
	Waiting  int `json:"waiting"`
	Running  int `json:"running"`
	Paused   int `json:"paused"`
	Complete int `json:"complete"`
	Pruned   int `json:"pruned"`
	Failed   int `json:"failed"`
}

// BestTrial names a trial and its values.
type BestTrial struct {
	Number int     `json:"number"`
	Values Numbers `json:"values"`
}

// StudyPage is a part of the list of studies.
type StudyPage struct {
	Items  []StudyItem   `json:"items" doc:"the one that changed last first"`
	Next   string        `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total  int           `json:"total"`
	Faulty []FaultyStudy `json:"faulty" doc:"journals that cannot be read"`
}

// FaultyStudy is a journal that cannot be read.
type FaultyStudy struct {
	Journal string `json:"journal"`
	Error   string `json:"error"`
}

// Front is the Pareto front of a study, or its best trial.
type Front struct {
	Seq     Count       `json:"seq" doc:"operations in the journal that this is of, 0 before the first result"`
	Pending bool        `json:"pending" doc:"a newer result is being computed: ask again"`
	Items   []BestTrial `json:"items" doc:"by number; the first 10000"`
	Total   int         `json:"total"`
}

// Importance tells how much each parameter matters.
type Importance struct {
	Seq       Count             `json:"seq" doc:"operations in the journal that this is of, 0 before the first result"`
	Pending   bool              `json:"pending" doc:"a newer result is being computed: ask again"`
	Method    string            `json:"method" doc:"fanova: as foldlog study importance computes it"`
	Sample    int               `json:"sample" doc:"complete trials that it was computed from"`
	Of        int               `json:"of" doc:"complete trials with a finite value that there were"`
	Explained *Number           `json:"explained" nullable:"true" doc:"part of the variance that is predicted for trials that were not looked at (R squared): if it is low, the rest means little; null with too few trials, or if all values are the same"`
	Items     []ParamImportance `json:"items" doc:"the one that matters most first; none with fewer than two trials"`
}

// ParamImportance is one parameter.
type ParamImportance struct {
	Name     string `json:"name"`
	Share    Number `json:"share" doc:"of what parameters make by themselves; all sum to 1, unless nothing matters"`
	Fraction Number `json:"fraction" doc:"of the whole variance"`
	Spread   Number `json:"spread" doc:"standard deviation of fraction among the trees"`
	Trials   int    `json:"trials" doc:"of the sample that have the parameter"`
}

// StudyDetail is one study.
type StudyDetail struct {
	StudyItem
	Space []ParamSpace `json:"space" doc:"the declared parameters"`
	Attrs Object       `json:"attrs" doc:"user attributes"`
}

// ParamSpace is one declared parameter.
type ParamSpace struct {
	Name    string  `json:"name"`
	Type    string  `json:"type" enum:"float,int,categorical,bool,other"`
	Low     *Number `json:"low" nullable:"true"`
	High    *Number `json:"high" nullable:"true"`
	Log     bool    `json:"log" doc:"drawn in the logarithm"`
	Step    *Number `json:"step" nullable:"true" doc:"null without a grid"`
	Choices []Any   `json:"choices" doc:"of a categorical parameter"`
	// When is what the parameter depends on.
	When []ParamWhen `json:"when" doc:"what it is there for, all of them; empty for always"`
}

// ParamWhen is what a parameter depends on.
type ParamWhen struct {
	Param  string `json:"param" doc:"the other parameter"`
	Values []Any  `json:"values" doc:"that it may have; empty for a range"`
	Low    Any    `json:"low" doc:"the least value, null if it is open"`
	High   Any    `json:"high" doc:"the greatest value, null if it is open"`
}

// OutboxPage is what is still to be done after trials ended.
type OutboxPage struct {
	Items []OutboxItem `json:"items" doc:"the first 1000"`
	Total int          `json:"total"`
}

// OutboxItem is one entry.
type OutboxItem struct {
	Number  int            `json:"number" doc:"of the ended trial"`
	Epoch   Count          `json:"epoch"`
	Phase   string         `json:"phase" doc:"what comes next"`
	Effects []OutboxEffect `json:"effects"`
}

// OutboxEffect is one thing to be carried out.
type OutboxEffect struct {
	Name string `json:"name"`
	Done bool   `json:"done"`
}
