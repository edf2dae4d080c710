package studycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

// attrOperands are the operands of study attr. Trial is nil for the study.
type attrOperands struct {
	path  string
	trial *uint64
	key   string
	value []byte // nil to get
}

func (a *app) attrCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "attr PATH [NUMBER] [KEY [VALUE]] [--worker ID --epoch N] [--json]",
		Short: "Set or print user attributes of a study or of a trial",
		Long: `Set the user attribute KEY of the study, or of the trial NUMBER, to VALUE; print
it if there is no VALUE, and all attributes if there is no KEY. A first operand
after PATH that is a whole number is that of a trial.

VALUE is JSON: a text has its quotes. An attribute that is set again is
replaced. Keys that begin with "atune:" or "foldlog:" are reserved.`,
		Example: "  foldlog study attr search.atj team '\"vision\"'\n  foldlog study attr search.atj 3 checkpoint",
		Args:    cmdline.Operands("PATH", "[NUMBER]", "[KEY]", "[VALUE]"),
	}
	name, fence := studyFlag(c), fenceFlag(c)
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		o, err := parseAttr(args)
		if err != nil {
			return err
		}
		worker, err := fence.check()
		if err != nil {
			return err
		}
		if o.value == nil {
			return cli.Failed("study attr", o.path, a.readStudy(c.Context(), o.path, *name, func(snap *study.Snapshot, st *study.Study) error {
				return a.printAttrs(snap, st, o, *asJSON)
			}))
		}
		return cli.Failed("study attr", o.path, a.writeStudy(c.Context(), o.path, *name, worker, func(j study.Storage, st *study.Study) error {
			return setAttr(c.Context(), j, st, o, fence)
		}))
	}
	return c
}

func parseAttr(args []string) (o attrOperands, err error) {
	o.path, args = args[0], args[1:]
	if len(args) > 0 {
		if n, err := strconv.ParseUint(args[0], 10, 64); err == nil {
			o.trial, args = &n, args[1:]
		}
	}
	switch len(args) {
	case 3:
		return o, cli.Usagef("study attr: NUMBER %q: trials are numbered from 0", args[0])
	case 2:
		if o.value, err = serde.AppendPortable([]byte{}, []byte(args[1])); err != nil {
			return o, cli.WithHint(cli.Usagef("VALUE %q: %v", args[1], err), `VALUE is JSON; a text has its quotes: '"adam"'`)
		}
		fallthrough
	case 1:
		if o.key = args[0]; o.key == "" {
			return o, cli.Usagef("KEY is empty")
		}
	}
	return o, nil
}

func setAttr(ctx context.Context, j study.Storage, st *study.Study, o attrOperands, fence *fenceFlags) error {
	if o.trial == nil {
		return j.Update(ctx, func(tx *study.Tx) error { return tx.SetStudyUserAttr(st.ID, o.key, o.value) })
	}
	t, err := pickTrial(j.Snapshot(), st, *o.trial)
	if err != nil {
		return err
	}
	f, err := fence.fence(t)
	if err != nil {
		return err
	}
	return ofTrial(st, t, j.Update(ctx, func(tx *study.Tx) error {
		if t.Managed {
			return tx.LifecycleFenced(f, &study.MutateUserAttr{Key: o.key, Value: o.value})
		}
		return tx.SetTrialUserAttr(t.ID, o.key, o.value)
	}))
}

// Attrs is the output of `foldlog study attr --json`.
type Attrs struct {
	Study  string          `json:"study"`
	Number *uint64         `json:"number"` // of the trial, null if they are the study's
	Attrs  studyview.Attrs `json:"attrs"`
}

func (a *app) printAttrs(snap *study.Snapshot, st *study.Study, o attrOperands, asJSON bool) error {
	attrs, owner := st.Attrs(), fmt.Sprintf("study %q", st.Config.Name)
	if o.trial != nil {
		t, err := pickTrial(snap, st, *o.trial)
		if err != nil {
			return err
		}
		attrs, owner = t.Attrs(), fmt.Sprintf("trial %d", t.Number)
	}
	chosen := chooseAttrs(attrs, o.key)
	if o.key != "" && len(chosen) == 0 {
		return fmt.Errorf("attribute %q of %s: %w", o.key, owner, study.ErrNotFound)
	}
	if asJSON {
		return cli.WriteJSON(a.Out(), Attrs{st.Config.Name, o.trial, chosen})
	}
	if o.key != "" {
		_, err := fmt.Fprintf(a.Out(), "%s\n", chosen[o.key])
		return err
	}
	var pairs [][2]string
	for _, key := range slices.Sorted(maps.Keys(chosen)) {
		pairs = append(pairs, [2]string{key, string(chosen[key])})
	}
	return cli.WriteFields(a.Out(), pairs...)
}

// chooseAttrs is the attribute of that key, or all user attributes.
func chooseAttrs(attrs iter.Seq2[string, study.Attr], key string) studyview.Attrs {
	chosen := studyview.Attrs{}
	if key == "" {
		attrs = studyview.UserAttrs(attrs)
	}
	for k, attr := range attrs {
		if k == key || key == "" {
			chosen[k] = json.RawMessage(attr.Value)
		}
	}
	return chosen
}
