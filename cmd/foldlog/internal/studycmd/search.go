package studycmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
)

// searchOptions are the flags that choose how a study searches. Empty texts are
// not stored: the study has the defaults then.
type searchOptions struct{ sampler, pruner string }

func (o *searchOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.sampler, "sampler", "", "what suggests parameters, as `NAME[:OPTION=VALUE,...]`: "+strings.Join(sampler.Names(), ", ")+" (default: "+sampler.Default+")")
	c.Flags().StringVar(&o.pruner, "pruner", "", "what stops trials early, as `NAME[:OPTION=VALUE,...]`: "+strings.Join(pruner.Names(), ", ")+" (default: "+pruner.Default+")")
	c.RegisterFlagCompletionFunc("sampler", cobra.FixedCompletions(sampler.Names(), cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("pruner", cobra.FixedCompletions(pruner.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// check refuses what cannot work on a study of that configuration.
func (o *searchOptions) check(config study.Config) error {
	if o.sampler != "" {
		s, err := sampler.Parse(o.sampler)
		if err == nil {
			err = sampler.Check(s, config)
		}
		if err != nil {
			return cli.Usagef("--sampler %s: %v", o.sampler, err)
		}
	}
	if o.pruner != "" {
		p, err := pruner.Parse(o.pruner)
		if err == nil {
			err = pruner.Check(p, config)
		}
		if err != nil {
			return cli.Usagef("--pruner %s: %v", o.pruner, err)
		}
	}
	return nil
}

// openOrCreate creates a study with its sampler and pruner in one transaction,
// unless there is one of that name.
func (o *searchOptions) openOrCreate(ctx context.Context, st study.Storage, c study.Config) (created bool, err error) {
	err = st.Update(ctx, func(tx *study.Tx) (err error) {
		var id study.StudyID
		id, created, err = tx.OpenOrCreateStudy(c)
		if err != nil || !created {
			return err
		}
		for _, attr := range [][2]string{{sampler.Attribute, o.sampler}, {pruner.Attribute, o.pruner}} {
			if attr[1] == "" {
				continue
			}
			if err := tx.SetStudySystemAttr(id, attr[0], serde.AppendString(nil, attr[1])); err != nil {
				return err
			}
		}
		return nil
	})
	return created && err == nil, err
}
