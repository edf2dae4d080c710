package proctest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	Role("FOLDLOG_PROCTEST_SAYS", func(words string) error {
		for word := range strings.FieldsSeq(words) {
			fmt.Println(word)
		}
		if words == "nothing good" {
			return errors.New("what went wrong")
		}
		return nil
	})
	os.Exit(m.Run())
}

func TestAProcessIsHeardToItsEnd(t *testing.T) {
	for words, failure := range map[string]string{"one two three": "", "nothing good": "what went wrong"} {
		var heard []string
		ended, err := Start(Self(t.Context(), "FOLDLOG_PROCTEST_SAYS="+words), func(line string) { heard = append(heard, line) })
		if err != nil {
			t.Fatal(err)
		}
		err = <-ended
		if (err != nil) != (failure != "") || err != nil && !strings.Contains(err.Error(), failure) {
			t.Errorf("%s: ended with %v", words, err)
		}
		if got := strings.Join(heard, " "); got != words {
			t.Errorf("heard %q, want %q", got, words)
		}
	}
}
