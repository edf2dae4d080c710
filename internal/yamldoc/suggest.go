package yamldoc

import (
	"fmt"
	"strings"
)

// Nearest is a hint for a name that is not among the known ones.
func Nearest(name string, known []string) string {
	if best, ok := Near(name, known); ok {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "there are " + strings.Join(known, ", ")
}

// Near is the known name that is at most two letters away, the nearest one.
func Near(name string, known []string) (best string, ok bool) {
	least := 3
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best, best != ""
}

// distance is the number of letters to change, add or leave out.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
