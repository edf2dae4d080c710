package study

import (
	"os"
	"testing"

	"github.com/foldlog/foldlog/internal/proctest"
)

func TestMain(m *testing.M) { os.Exit(proctest.Run(m)) }
