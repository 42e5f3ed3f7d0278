//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// picture looks at the page in both colour schemes; with -update the light one is
// kept for the documents, and beside it the words that it shows. A page that says
// something else than those has a stale picture: words are the same with any font.
func (p *tab) picture(name string) {
	p.t.Helper()
	if *update {
		needChinese(p.t)
	}
	js[chromedp.Void](p, `scrollTo(0, 0)`)
	for _, scheme := range []string{"dark", "light"} {
		p.look(scheme)
		ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		cancel()
		if err != nil {
			p.t.Fatal(err)
		}
		if scheme == "light" && *update {
			save(p.t, filepath.Join("..", "..", "docs", "images", name+".png"), png)
		}
	}
	words, file := wordsShown(p.text("main")), filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(words), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != words {
		p.t.Errorf("docs/images/%s.png is stale: run this test with -update where there is a Chinese font. The page says\n%s\nand said (%v)\n%s", name, words, err, want)
	}
}

// needChinese keeps the language button from being two boxes in a picture.
func needChinese(t *testing.T) {
	t.Helper()
	fonts, err := exec.Command("fc-list", ":lang=zh").Output()
	if err != nil || len(bytes.TrimSpace(fonts)) == 0 {
		t.Fatalf("pictures show Chinese, and no font here has it: install one, such as Debian's fonts-wqy-zenhei (%v)", err)
	}
}

// what is another one in each run: names, times, ages, numbers.
var varying = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`leased to [^,]+,`), "leased to WORKER,"},
	{regexp.MustCompile(`(\d+ \w+ \d{4}, )?\d\d:\d\d:\d\d(\.\d+)?`), "TIME"},
	{regexp.MustCompile(`\d+ (s|min|h|d)\b`), "AGE"},
	{regexp.MustCompile(`\d([\d.,]*\d)?k?`), "N"},
}

// wordsShown is a text with what varies replaced, each line once.
func wordsShown(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.word)
	}
	var lines []string
	seen := map[string]bool{"": true}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !seen[line] {
			lines, seen[line] = append(lines, line), true
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
