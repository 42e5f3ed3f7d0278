package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/semel-dev/semel/sdk/js"
)

//go:embed static
var static embed.FS

// A file is one file of the page, compressed once.
type file struct {
	body, zipped []byte
	tag, media   string
}

// files are all of them, by URL path. They are asked for again with every visit
// and answered with 304, so a new build is seen at once and costs next to nothing.
type files map[string]file

func readFiles() (files, error) {
	all := files{}
	pages, err := fs.Sub(static, "static")
	if err != nil {
		return nil, err
	}
	for under, from := range map[string]fs.FS{"/": pages, "/sdk/": js.Source} {
		err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			body, err := fs.ReadFile(from, name)
			all[under+name] = newFile(name, body)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func newFile(name string, body []byte) file {
	sum := sha256.Sum256(body)
	f := file{body: body, tag: hex.EncodeToString(sum[:8]), media: mime.TypeByExtension(path.Ext(name))}
	if path.Ext(name) == ".js" { // which some systems' tables call something else
		f.media = "text/javascript; charset=utf-8"
	}
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is valid
	z.Write(body)
	z.Close()
	f.zipped = zipped.Bytes()
	return f
}

// ServeHTTP serves one file.
func (all files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := all[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	body, tag := f.body, f.tag
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body, tag = f.zipped, tag+"-gz"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
