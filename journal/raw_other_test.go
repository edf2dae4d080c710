//go:build !unix

package journal

import "os"

func rawRename(from, to string) error { return os.Rename(from, to) }
