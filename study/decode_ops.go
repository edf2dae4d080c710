package study

var (
	createStudyFields = opFields("study", "config")
	createTrialFields = opFields("study", "trial", "number", "template?")
	transitionFields  = opFields("trial", "from", "to")
	paramsBatchFields = opFields("trial", "params")
	reportFields      = opFields("trial", "step", "values")
	setValuesFields   = opFields("trial", "values")
	setErrorFields    = opFields("trial", "message")
	heartbeatFields   = opFields("trial", "at_millis")
	studyAttrFields   = opFields("study", "key", "value")
	trialAttrFields   = opFields("trial", "key", "value")
	putStateFields    = opFields("scope", "blob")
)

func (d *Decoder) trialID() TrialID { return TrialID(d.s.Uint64()) }

func (d *Decoder) createStudy(kindSeen bool) Op {
	op := new(CreateStudy)
	t := track(createStudyFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Study = StudyID(d.s.Uint64())
		case 1:
			op.Config = d.config()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) createTrial(kindSeen bool) Op {
	op := &d.ops.createTrial
	*op = CreateTrial{}
	t := track(createTrialFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Study = StudyID(d.s.Uint64())
		case 1:
			op.Trial = d.trialID()
		case 2:
			op.Number = d.s.Uint64()
		case 3:
			op.Template = d.template()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) transition(kindSeen bool) Op {
	op := &d.ops.transition
	*op = Transition{}
	t := track(transitionFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.From = d.state()
		case 2:
			op.To = d.state()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) paramsBatch(kindSeen bool) Op {
	op := &d.ops.paramsBatch
	*op = ParamsBatch{Params: op.Params[:0]}
	t := track(paramsBatchFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Params = d.params(op.Params)
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) report(kindSeen bool) Op {
	op := &d.ops.report
	*op = Report{Values: op.Values[:0]}
	t := track(reportFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Step = d.s.Uint64()
		case 2:
			op.Values = d.floats(op.Values)
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) setValues(kindSeen bool) Op {
	op := &d.ops.setValues
	*op = SetValues{Values: op.Values[:0]}
	t := track(setValuesFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Values = d.floats(op.Values)
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) setError(kindSeen bool) Op {
	op := &d.ops.setError
	*op = SetError{}
	t := track(setErrorFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Message = d.s.String()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) heartbeat(kindSeen bool) Op {
	op := &d.ops.heartbeat
	*op = Heartbeat{}
	t := track(heartbeatFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.AtMillis = d.s.Uint64()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) studyAttr(kindSeen bool) Op {
	op := &d.ops.studyAttr
	*op = SetStudyUserAttr{}
	t := track(studyAttrFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Study = StudyID(d.s.Uint64())
		case 1:
			op.Key = d.intern(d.s.Bytes())
		case 2:
			op.Value = d.s.Raw()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) trialAttr(kindSeen bool) Op {
	op := &d.ops.trialAttr
	*op = SetTrialUserAttr{}
	t := track(trialAttrFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Key = d.intern(d.s.Bytes())
		case 2:
			op.Value = d.s.Raw()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) putState(kindSeen bool) Op {
	op := &d.ops.putState
	*op = PutState{}
	t := track(putStateFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Scope = d.scope()
		case 1:
			op.Blob = d.blob()
		}
	}
	op.Extra = t.extra
	return op
}
