// Package js holds the source of @semel/browser, so that Go programs can serve
// it. The package itself is plain ES modules; see README.md.
package js

import (
	"embed"
	"io/fs"
)

//go:embed src/*.js
var files embed.FS

// Source is the folder of modules; index.js is the one to import.
var Source = must(fs.Sub(files, "src"))

func must(f fs.FS, err error) fs.FS {
	if err != nil {
		panic(err) // the folder is embedded: it is there
	}
	return f
}
