//go:build !linux

package server

import "os"

// datasync makes the content and the size of a file durable.
func datasync(f *os.File) error { return f.Sync() }
