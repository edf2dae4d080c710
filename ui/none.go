//go:build no_ui

// Package ui has the dashboard; this build is without it.
package ui

import "io/fs"

// Files are the built dashboard: none in this build.
func Files() fs.FS { return nil }
