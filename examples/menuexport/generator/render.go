package generator

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"sync"

	"golang.org/x/image/math/fixed"
)

// Picture is a rendered menu.
type Picture struct {
	PNG           []byte
	Width, Height int // in pixels
}

// Render draws a menu: its title, and a card for each day. It wraps what is long
// and clips nothing; the height is as much as that needs. The same menu gives
// the same bytes. Its only error is an [*InputError] for a menu that
// [Menu.Validate] refuses. Safe for concurrent use.
func Render(m Menu) (Picture, error) {
	if err := m.Validate(); err != nil {
		return Picture{}, err
	}
	p := lay(m)
	cv := paint(p, themes[m.Theme])
	var buf bytes.Buffer
	if err := encoder.Encode(&buf, cv.RGBA); err != nil {
		panic("generator: PNG into memory: " + err.Error())
	}
	return Picture{PNG: buf.Bytes(), Width: p.width, Height: p.height}, nil
}

var encoder = &png.Encoder{CompressionLevel: png.DefaultCompression, BufferPool: &encoderBuffers{}}

// encoderBuffers lets pictures share the encoder's buffers.
type encoderBuffers struct{ pool sync.Pool }

func (b *encoderBuffers) Get() *png.EncoderBuffer {
	buf, _ := b.pool.Get().(*png.EncoderBuffer)
	return buf
}

func (b *encoderBuffers) Put(buf *png.EncoderBuffer) { b.pool.Put(buf) }

// paint draws a page.
func paint(p *page, th *theme) *canvas {
	cv := newCanvas(p.width, p.height, th.page)
	cv.block(&p.title, th.title)
	cv.strip(p, th)
	for i := range p.cards {
		cv.card(&p.cards[i], p.style, th, th.days[i])
	}
	return cv
}

// strip shows the days' colours in a row under the title.
func (cv *canvas) strip(p *page, th *theme) {
	height := p.strip.Dy()
	step, x := p.style.body.px(1500), p.strip.Min.X
	for i := range p.cards {
		r := image.Rect(x, p.strip.Min.Y, x+step-height, p.strip.Max.Y)
		cv.rounded(r, height/2, r.Max.Y, th.days[i])
		x += step
	}
}

func (cv *canvas) card(c *card, s style, th *theme, hue color.RGBA) {
	line := max(1, s.body.px(60))
	drop := c.box.Add(image.Pt(0, s.body.px(120)))
	cv.shadow(drop, s.radius, s.body.px(700), th.shadow)
	cv.rounded(c.box, s.radius, c.box.Max.Y, th.border)
	in := c.box.Inset(line)
	cv.rounded(in, s.radius-line, in.Max.Y, th.card)
	cv.rounded(in, s.radius-line, c.band, mix(th.card, hue, th.tint))
	cv.block(&c.day, hue)
	size := 2 * max(3, s.body.px(155))
	for i := range c.dishes {
		d := &c.dishes[i]
		x, y := d.x-s.bullet, d.y+(d.lineHeight-size)/2
		cv.rounded(image.Rect(x, y, x+size, y+size), size/2, y+size, mix(th.card, hue, 70))
		cv.block(d, th.text)
	}
}

// block draws a text in its lines.
func (cv *canvas) block(b *block, c color.RGBA) {
	for i, l := range b.lines {
		// Chinese characters fill the em square from 880 above the baseline to
		// 120 below; that square sits in the middle of the line.
		top := b.y + i*b.lineHeight + (b.lineHeight-b.text.face.size)/2
		cv.text(fixed.I(b.x), top+b.text.face.px(880), b.text, l, c)
	}
}
