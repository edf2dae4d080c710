package proctest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Lasts is how long a test that can go on for long does so: the duration in FOLDLOG_SOAK,
// or else as long as usual, and a quarter of that where tests are to be short.
func Lasts(t testing.TB, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("FOLDLOG_SOAK")
	if text == "" {
		if testing.Short() {
			return usual / 4
		}
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("FOLDLOG_SOAK: %v", err)
	}
	return d
}

// Seed is that of a test that draws lots. It is logged; FOLDLOG_SEED repeats one, as far as
// goroutines do.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("FOLDLOG_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("FOLDLOG_SEED=%d", seed)
	return seed
}
