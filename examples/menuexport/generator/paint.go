package generator

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/math/fixed"
)

// canvas is an opaque picture that is painted from back to front.
type canvas struct{ *image.RGBA }

func newCanvas(w, h int, c color.RGBA) *canvas {
	cv := &canvas{image.NewRGBA(image.Rect(0, 0, w, h))}
	for y := range h {
		cv.fill(0, w, y, c)
	}
	return cv
}

// fill paints the pixels from x0 to x1 of row y.
func (cv *canvas) fill(x0, x1, y int, c color.RGBA) {
	x0, x1 = max(x0, 0), min(x1, cv.Rect.Max.X)
	if x0 >= x1 || y < 0 || y >= cv.Rect.Max.Y {
		return
	}
	row := cv.Pix[cv.PixOffset(x0, y):cv.PixOffset(x1, y)]
	row[0], row[1], row[2], row[3] = c.R, c.G, c.B, c.A
	for n := 4; n < len(row); n *= 2 {
		copy(row[n:], row[:n])
	}
}

// blend lays c over one pixel, with alpha from 0 to 255.
func (cv *canvas) blend(x, y int, c color.RGBA, alpha int) {
	if alpha <= 0 || !(image.Point{x, y}).In(cv.Rect) {
		return
	}
	p := cv.Pix[cv.PixOffset(x, y):]
	f := func(under, over uint8) uint8 { return uint8((int(under)*(255-alpha) + int(over)*alpha + 127) / 255) }
	p[0], p[1], p[2] = f(p[0], c.R), f(p[1], c.G), f(p[2], c.B)
}

// rounded paints a rectangle with round corners; of its rows, only those above
// bottom.
func (cv *canvas) rounded(r image.Rectangle, radius, bottom int, c color.RGBA) {
	radius = min(radius, r.Dx()/2, r.Dy()/2)
	for y := r.Min.Y; y < min(r.Max.Y, bottom); y++ {
		if y >= r.Min.Y+radius && y < r.Max.Y-radius {
			cv.fill(r.Min.X, r.Max.X, y, c)
			continue
		}
		cv.fill(r.Min.X+radius, r.Max.X-radius, y, c)
		for i := range radius {
			// Both corners of a row are alike.
			alpha := coverage(distance(r, radius, r.Min.X+i, y))
			cv.blend(r.Min.X+i, y, c, alpha)
			cv.blend(r.Max.X-1-i, y, c, alpha)
		}
	}
}

// shadow darkens what is around r, less the farther away, up to spread pixels.
func (cv *canvas) shadow(r image.Rectangle, radius, spread, strength int) {
	at := func(x, y int) int {
		d := 1 - distance(r, radius, x, y)/float64(spread)
		if d <= 0 {
			return 0
		}
		return int(float64(strength)*min(d, 1)*min(d, 1) + 0.5)
	}
	black := color.RGBA{A: 0xff}
	left, right := r.Min.X+radius, r.Max.X-radius
	for y := r.Min.Y - spread; y < r.Max.Y+spread; y++ {
		for i := range radius + spread {
			alpha := at(left-1-i, y)
			cv.blend(left-1-i, y, black, alpha)
			cv.blend(right+i, y, black, alpha)
		}
		if y < r.Min.Y || y >= r.Max.Y-radius {
			alpha := at(left, y)
			for x := left; x < right; x++ {
				cv.blend(x, y, black, alpha)
			}
		}
	}
}

// distance from a pixel's middle to the edge of a round-cornered rectangle, in
// pixels; below 0 inside.
func distance(r image.Rectangle, radius, x, y int) float64 {
	out := func(p, lo, hi int) float64 {
		m := float64(p) + 0.5
		return max(float64(lo+radius)-m, m-float64(hi-radius))
	}
	dx, dy := out(x, r.Min.X, r.Max.X), out(y, r.Min.Y, r.Max.Y)
	return math.Hypot(max(dx, 0), max(dy, 0)) + min(max(dx, dy), 0) - float64(radius)
}

// coverage of a pixel whose middle is d pixels outside an edge, 0 to 255.
func coverage(d float64) int { return int(255*min(max(0.5-d, 0), 1) + 0.5) }

// text draws the runes of one line, the first at x, on a baseline.
func (cv *canvas) text(x fixed.Int26_6, baseline int, t *text, l span, c color.RGBA) {
	ink := image.NewUniform(c)
	dot := fixed.Point26_6{X: x, Y: fixed.I(baseline)}
	if l.a < l.b {
		dot.X -= t.face.hang(t.runes[l.a])
	}
	for i := l.a; i < l.b; i++ {
		if i > l.a {
			dot.X += t.lead[i]
		}
		cv.glyph(dot, t.face, t.runes[i], ink)
		dot.X += t.face.advance(t.runes[i])
	}
}

func (cv *canvas) glyph(dot fixed.Point26_6, f *typeface, r rune, ink *image.Uniform) {
	if isBlank(r) {
		return
	}
	// The result's ok is false for the fallback box, which is drawn as well.
	dr, mask, mp, _, _ := f.face.Glyph(dot, r)
	if mask == nil {
		return
	}
	draw.DrawMask(cv.RGBA, dr, ink, image.Point{}, mask, mp, draw.Over)
	if f.bold {
		// The embedded font has one weight. A second impression, a fortieth of
		// the size to the right, gives headings a heavier stem.
		dot.X += f.em(25)
		dr, mask, mp, _, _ = f.face.Glyph(dot, r)
		draw.DrawMask(cv.RGBA, dr, ink, image.Point{}, mask, mp, draw.Over)
	}
}

// hang is how far an opening bracket at a line's start moves out to the left: its
// left half is empty, and the line would look indented.
func (t *typeface) hang(r rune) fixed.Int26_6 {
	switch r {
	case '（', '〔', '［', '｛', '〈', '《', '「', '『', '【', '〖', '“', '‘':
		if b, _, ok := t.face.GlyphBounds(r); ok {
			return max(b.Min.X-t.em(60), 0)
		}
	}
	return 0
}
