//go:build !no_ui

// Package ui has the dashboard as the project's own build step leaves it in dist,
// embedded into the binary. Built with the tag no_ui, or without that step, it has
// nothing.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files are the built dashboard, or nil if it was not built.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil
	}
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil
	}
	return files
}
