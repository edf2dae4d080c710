package metrics

import (
	"fmt"
	"strings"
)

// The limits of the document, the same on every target.
const (
	// MaxAnnotation is the most UTF-16 units of an annotation's text.
	MaxAnnotation = 16_000
	// MaxOpenMetadata is the most bytes of an open's metadata in compact JSON.
	MaxOpenMetadata = 64 << 10
	// MaxName is the most bytes of a metric's name.
	MaxName = 1 << 10
	// MaxSlug is the most bytes of a slug.
	MaxSlug = 200
	// MaxDescription is the most UTF-16 units of a description.
	MaxDescription = MaxAnnotation
	// MaxLine is the most bytes of a line, without its newline, that readers
	// hold. No event that fits the other limits is longer.
	MaxLine = 1 << 20
)

// units16 counts the UTF-16 units of a text.
func units16(text string) int {
	n := 0
	for _, r := range text {
		n += unitsOf(r)
	}
	return n
}

func unitsOf(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// CutText returns the longest beginning of text that has at most limit UTF-16
// units and ends between two characters.
func CutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	n := 0
	for i, r := range text {
		if n += unitsOf(r); n > limit {
			return text[:i]
		}
	}
	return text
}

// LoweringBlock is a lowering report in its three parts, none with a newline
// at its end.
type LoweringBlock struct {
	// Head is what comes before the graphs, without the words "lowering: ".
	Head string
	// Graphs are the lines about graphs, which a long block loses from the end.
	Graphs []string
	// Tail are the lines after the graphs, which it keeps.
	Tail []string
}

// text spells the block within [MaxAnnotation], saying how many graph lines
// are left out. Head and tail alone may be too long; then the end is cut.
func (b LoweringBlock) text() string {
	graphs, more := b.Graphs, ""
	total := units16("lowering: " + b.Head)
	for _, lines := range [][]string{b.Graphs, b.Tail} {
		for _, line := range lines {
			total += 1 + units16(line)
		}
	}
	for len(graphs) > 0 && total+len(more) > MaxAnnotation {
		total -= 1 + units16(graphs[len(graphs)-1])
		graphs = graphs[:len(graphs)-1]
		more = fmt.Sprintf("\n... %d more lines", len(b.Graphs)-len(graphs))
	}
	var text strings.Builder
	text.WriteString("lowering: " + b.Head)
	for _, line := range graphs {
		text.WriteString("\n" + line)
	}
	text.WriteString(more)
	for _, line := range b.Tail {
		text.WriteString("\n" + line)
	}
	return CutText(mend(text.String()), MaxAnnotation)
}

// cutLines keeps whole lines from the beginning until limit UTF-16 units, and
// says how many are left out.
func cutLines(lines []string, limit int) []string {
	n := 0
	for i, line := range lines {
		if n += units16(line) + 1; n > limit-24 && (i < len(lines)-1 || n > limit) {
			return append(lines[:i:i], fmt.Sprintf("... %d more lines", len(lines)-i))
		}
	}
	return lines
}

// countSentence stands for sources that do not fit; the document's words.
func countSentence(files int) string { return fmt.Sprintf("%d files, too large to record", files) }
