package generator

import (
	"image"
	"math"

	"golang.org/x/image/math/fixed"
)

// page is a menu with everything placed, in pixels. Only colours are missing.
type page struct {
	width, height int
	margin        int
	title         block
	strip         image.Rectangle // where the days' colours are shown under the title
	cards         []card
	style         style
}

// block is one text in lines, from the top left corner of its first line.
type block struct {
	text       *text
	lines      []span
	x, y       int
	lineHeight int
}

func (b *block) height() int { return len(b.lines) * b.lineHeight }

// card is one day.
type card struct {
	box    image.Rectangle
	band   int // the row under the heading's band
	day    block
	dishes []block
	height int // that it needs; rows of cards are as tall as their tallest
}

// style holds the measures of a picture; all follow from its width.
type style struct {
	body, heading *typeface
	margin, gap   int
	pad           int // inside a card
	radius        int
	bullet        int // from a dish's bullet to its text
	dishGap       int
}

func newStyle(width int) style {
	// Type grows more slowly than the picture: a wide one gets larger type and
	// more columns.
	em := max(15, int(18*math.Pow(float64(width)/800, 0.6)+0.5))
	body := newTypeface(em, false)
	return style{
		body: body, heading: newTypeface(body.px(1120), true),
		margin: width / 20, gap: body.px(900),
		pad: body.px(950), radius: body.px(600), bullet: body.px(850),
		dishGap: body.px(380),
	}
}

// lay places everything. It is a pure function of the menu.
func lay(m Menu) *page {
	s := newStyle(m.Width)
	p := &page{width: m.Width, margin: s.margin, style: s}
	inner := m.Width - 2*s.margin

	p.title = layTitle(m, s, inner)
	y := p.title.y + p.title.height() + s.body.px(500)
	p.strip = image.Rect(s.margin, y, s.margin+inner, y+max(3, s.body.px(220)))
	y = p.strip.Max.Y + s.body.px(1400)

	for _, row := range rows(m.Days, s, inner) {
		tallest := 0
		for i := range row {
			tallest = max(tallest, row[i].height)
		}
		for i := range row {
			row[i].move(y, tallest)
		}
		p.cards = append(p.cards, row...)
		y += tallest + s.gap
	}
	p.height = y - s.gap + s.margin
	return p
}

// layTitle sets the title large, and smaller where it would take many lines.
func layTitle(m Menu, s style, inner int) block {
	for size := 2200; ; size -= 200 {
		face := newTypeface(s.body.px(size), true)
		t := face.measure(m.Title)
		lines := t.balanced(fixed.I(inner))
		if len(lines) <= 2 || size <= 1400 {
			return block{text: t, lines: lines, x: s.margin, y: s.margin - face.px(180), lineHeight: face.px(1360)}
		}
	}
}

// rows spreads the days over rows of cards that fill the width. It takes the
// most columns in which the dishes need no more than three lines on average.
func rows(days []Day, s style, inner int) [][]card {
	columns := min(len(days), max(1, (inner+s.gap)/(s.body.px(11000)+s.gap)))
	for {
		grid, long := tryRows(days, s, inner, (len(days)+columns-1)/columns)
		if !long || columns == 1 {
			return grid
		}
		columns--
	}
}

// tryRows lays the days in n rows, the first ones holding one more where they
// can't be equal, and tells whether the dishes need too many lines.
func tryRows(days []Day, s style, inner, n int) (grid [][]card, long bool) {
	lines, dishes := 0, 0
	for r := range n {
		// What is left is shared by the rows that are left, rounded up.
		count := (len(days) + n - r - 1) / (n - r)
		row := make([]card, count)
		for i := range row {
			// Widths differ by at most a pixel, so that the row fills exactly.
			x0 := (inner + s.gap) * i / count
			x1 := (inner+s.gap)*(i+1)/count - s.gap
			row[i] = layCard(days[i], s, s.margin+x0, x1-x0)
			for _, d := range row[i].dishes {
				lines += len(d.lines)
			}
			dishes += len(row[i].dishes)
		}
		days = days[count:]
		grid = append(grid, row)
	}
	return grid, lines > 3*dishes
}

// layCard lays one day at the top of the picture; move brings it to its row.
func layCard(day Day, s style, x, width int) card {
	inner := width - 2*s.pad
	name := s.heading.measure(day.Day)
	c := card{box: image.Rect(x, 0, x+width, 0)}
	c.day = block{text: name, lines: name.balanced(fixed.I(inner)), x: x + s.pad, y: s.body.px(420), lineHeight: s.heading.px(1450)}
	c.band = c.day.y + c.day.height() + s.body.px(380)

	columns, colWidth := dishColumns(day.Dishes, s, inner)
	top := c.band + s.body.px(620)
	bottom := top
	for i, col := range columns {
		y := top
		for _, d := range col {
			d.x = x + s.pad + i*(colWidth+s.gap) + s.bullet
			d.y = y
			y += d.height() + s.dishGap
			c.dishes = append(c.dishes, d)
		}
		bottom = max(bottom, y-s.dishGap)
	}
	c.height = bottom + s.body.px(750)
	return c
}

// dishColumns sets the dishes in one column, or in several where the card is
// wide and the dishes short.
func dishColumns(dishes []string, s style, inner int) ([][]block, int) {
	most := min(len(dishes)/2, (inner+s.gap)/(s.body.px(13000)+s.gap))
	for n := most; n > 1; n-- {
		width := (inner+s.gap)/n - s.gap
		if blocks, lines := setDishes(dishes, s, width); lines*4 <= len(dishes)*5 {
			return split(blocks, n, s.dishGap), width
		}
	}
	blocks, _ := setDishes(dishes, s, inner)
	return [][]block{blocks}, inner
}

func setDishes(dishes []string, s style, width int) (blocks []block, lines int) {
	for _, dish := range dishes {
		t := s.body.measure(dish)
		b := block{text: t, lines: t.tidy(fixed.I(width - s.bullet)), lineHeight: s.body.px(1480)}
		lines += len(b.lines)
		blocks = append(blocks, b)
	}
	return blocks, lines
}

// split cuts blocks into at most n runs, in order, the tallest as short as it
// can be.
func split(blocks []block, n, gap int) [][]block {
	for limit := blocks[0].lineHeight; ; limit += max(1, gap/2) {
		if cols := fillColumns(blocks, limit, gap); cols != nil && len(cols) <= n {
			return cols
		}
	}
}

// fillColumns fills columns up to a height. Nil means that a block is taller.
func fillColumns(blocks []block, limit, gap int) (cols [][]block) {
	start, y := 0, 0
	for i := range blocks {
		h := blocks[i].height()
		if h > limit {
			return nil
		}
		if y > 0 && y+gap+h > limit {
			cols, start, y = append(cols, blocks[start:i]), i, 0
		}
		if y > 0 {
			y += gap
		}
		y += h
	}
	return append(cols, blocks[start:])
}

// move brings a card down to row y and makes it height pixels tall.
func (c *card) move(y, height int) {
	c.box.Min.Y, c.box.Max.Y = y, y+height
	c.band += y
	c.day.y += y
	for i := range c.dishes {
		c.dishes[i].y += y
	}
}
