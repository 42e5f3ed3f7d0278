package generator

import (
	_ "embed" // the font
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// fontData is Menu Sans SC, a reduced Noto Sans CJK SC. See font/README.md.
//
//go:embed font/MenuSansSC-Regular.otf
var fontData []byte

// parsedFont is the embedded font. Its tables are read once per process; faces
// are made per picture, since a face can be used by one goroutine at a time.
var parsedFont = sync.OnceValue(func() *opentype.Font {
	f, err := opentype.Parse(fontData)
	if err != nil {
		panic("generator: the embedded font: " + err.Error())
	}
	return f
})

// typeface is the font at one size. Not safe for concurrent use.
type typeface struct {
	face font.Face
	size int  // of the em square, in pixels
	bold bool // drawn a little heavier
}

func newTypeface(size int, bold bool) *typeface {
	face, err := opentype.NewFace(parsedFont(), &opentype.FaceOptions{Size: float64(size), DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		panic("generator: the embedded font: " + err.Error())
	}
	return &typeface{face: face, size: size, bold: bold}
}

// em returns n thousandths of the size.
func (t *typeface) em(n int) fixed.Int26_6 { return fixed.I(t.size) * fixed.Int26_6(n) / 1000 }

// px returns n thousandths of the size, in whole pixels.
func (t *typeface) px(n int) int { return t.em(n).Round() }

// advance is how far r moves the pen. A character that the font lacks is as wide
// as the box drawn in its place.
func (t *typeface) advance(r rune) fixed.Int26_6 {
	a, _ := t.face.GlyphAdvance(r)
	return a
}
