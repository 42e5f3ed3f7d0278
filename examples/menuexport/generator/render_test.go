package generator

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"sync"
	"testing"

	"golang.org/x/image/math/fixed"
	"golang.org/x/text/encoding/simplifiedchinese"
	"pgregory.net/rapid"
)

// weekMenu is a usual menu: seven days, a few dishes each.
func weekMenu() Menu {
	return Menu{Title: "本周菜单", Theme: Light, Width: DefaultWidth, Days: []Day{
		{"周一", []string{"番茄炒蛋", "米饭", "Tomato & egg soup"}},
		{"周二", []string{"红烧排骨", "清炒时蔬", "紫菜蛋花汤", "米饭"}},
		{"周三", []string{"宫保鸡丁", "蒜蓉西兰花", "杂粮饭"}},
		{"周四", []string{"清蒸鲈鱼", "麻婆豆腐", "酸辣土豆丝", "米饭", "冬瓜排骨汤（小火慢炖三小时）"}},
		{"周五", []string{"意大利面 Spaghetti alla Bolognese", "凯撒沙拉 Caesar salad", "蘑菇浓汤"}},
		{"周六", []string{"牛肉火锅", "手擀面"}},
		{"周日", []string{"Grandma’s Sunday roast", "Crème brûlée", "饺子（猪肉白菜馅）"}},
	}}
}

// fullMenu has as many days and dishes as there can be, each dish the same.
func fullMenu(dish string) Menu {
	m := Menu{Title: dish, Theme: Light, Width: DefaultWidth}
	for i := range MaxDays {
		day := Day{Day: fmt.Sprintf("Day %d", i+1)}
		for range MaxDishes {
			day.Dishes = append(day.Dishes, dish)
		}
		m.Days = append(m.Days, day)
	}
	return m
}

func mustRender(t testing.TB, m Menu) (image.Image, []byte) {
	t.Helper()
	pic, err := Render(m)
	if err != nil {
		t.Fatal(err)
	}
	im, err := png.Decode(bytes.NewReader(pic.PNG))
	if err != nil {
		t.Fatal(err)
	}
	if size := im.Bounds().Size(); size != (image.Pt(pic.Width, pic.Height)) || pic.Width != m.Width {
		t.Fatalf("picture is %v, announced %d×%d, asked for width %d", size, pic.Width, pic.Height, m.Width)
	}
	return im, pic.PNG
}

func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	linear := func(v uint32) float64 {
		f := float64(v) / 0xffff
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

func contrast(a, b color.Color) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// ink counts the pixels of r that stand out from what is under them.
func ink(im image.Image, r image.Rectangle, under color.Color) (n int) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if contrast(im.At(x, y), under) > 3 {
				n++
			}
		}
	}
	return n
}

func TestRenderTheSameBytes(t *testing.T) {
	_, want := mustRender(t, weekMenu())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if pic, err := Render(weekMenu()); err != nil || !bytes.Equal(pic.PNG, want) {
				t.Errorf("the same menu gives other bytes: %v", err)
			}
		})
	}
	wg.Wait()
}

func TestRenderTellsMenusApart(t *testing.T) {
	seen := map[string]string{}
	variants := map[string]func(*Menu){
		"as it is": func(*Menu) {},
		"title":    func(m *Menu) { m.Title = "下周菜单" },
		"day":      func(m *Menu) { m.Days[0].Day = "周八" },
		"dish":     func(m *Menu) { m.Days[2].Dishes[0] = "宫保鸡丝" },
		"last":     func(m *Menu) { m.Days[6].Dishes[2] = "饺子（猪肉韭菜馅）" },
		"theme":    func(m *Menu) { m.Theme = Dark },
		"width":    func(m *Menu) { m.Width = 801 },
	}
	for name, change := range variants {
		m := weekMenu()
		change(&m)
		im, _ := mustRender(t, m)
		pixels := string(im.(*image.RGBA).Pix)
		if other, ok := seen[pixels]; ok {
			t.Errorf("%s and %s are the same picture", name, other)
		}
		seen[pixels] = name
	}
}

// Every text of the menu leaves ink where the layout says it is.
func TestRenderInk(t *testing.T) {
	for _, theme := range []string{Light, Dark} {
		for _, width := range []int{320, 800, 1600} {
			m := weekMenu()
			m.Theme, m.Width = theme, width
			im, _ := mustRender(t, m)
			p, th := lay(m), themes[theme]
			check := func(what string, b block, under color.Color) {
				for i, l := range b.lines {
					y := b.y + i*b.lineHeight
					box := image.Rect(b.x, y, b.x+b.text.width(l.a, l.b).Ceil(), y+b.lineHeight)
					if n := ink(im, box, under); n < box.Dx()*b.text.face.size/20 {
						t.Errorf("%s, %d wide: %s has %d pixels of ink in %v", theme, width, what, n, box)
					}
				}
			}
			check("the title", p.title, th.page)
			for i, c := range p.cards {
				check(m.Days[i].Day, c.day, mix(th.card, th.days[i], th.tint))
				for j, d := range c.dishes {
					check(m.Days[i].Dishes[j], d, th.card)
				}
			}
		}
	}
}

// mask returns the pixels of one character, drawn black on white.
func mask(r rune) []byte {
	cv := newCanvas(64, 64, rgb(0xffffff))
	cv.glyph(fixed.P(8, 48), newTypeface(40, false), r, image.NewUniform(color.Black))
	return cv.Pix
}

func TestFallbackBox(t *testing.T) {
	blank := newCanvas(64, 64, rgb(0xffffff)).Pix
	box := mask('\U000f0000') // no font has it
	if bytes.Equal(box, blank) {
		t.Fatal("a missing glyph leaves nothing")
	}
	if !bytes.Equal(mask('🥟'), box) {
		t.Error("an emoji is not the box")
	}
	seen := map[string]rune{}
	for _, r := range "番茄Tomae" {
		pixels := mask(r)
		if bytes.Equal(pixels, box) || bytes.Equal(pixels, blank) {
			t.Errorf("%c has no glyph", r)
		}
		if other, ok := seen[string(pixels)]; ok {
			t.Errorf("%c and %c look the same", r, other)
		}
		seen[string(pixels)] = r
	}
}

// The font has what a menu needs: GB 2312, Latin-1, punctuation of both scripts.
func TestFontCoverage(t *testing.T) {
	var want []rune
	for a := byte(0xa1); a <= 0xf7; a++ {
		for b := byte(0xa1); b <= 0xfe; b++ {
			s, err := simplifiedchinese.HZGB2312.NewDecoder().String("~{" + string([]byte{a & 0x7f, b & 0x7f}) + "~}")
			if r := []rune(s); err == nil && len(r) == 1 && r[0] != '\ufffd' {
				want = append(want, r[0])
			}
		}
	}
	if len(want) < 7000 {
		t.Fatalf("GB 2312 has only %d characters", len(want))
	}
	for r := rune(0x20); r <= 0xff; r++ {
		if r < 0x7f || r > 0xa0 && r != 0xad {
			want = append(want, r)
		}
	}
	want = append(want, []rune("‘’“”–—…·•€￥×°℃½①★☆♥→、。《》「」【】〈〉（）！？；：～％麵饸饹焗汆醪糍馃김치かなカナ")...)
	for r := rune(0xff01); r <= 0xff5e; r++ {
		want = append(want, r)
	}
	var missing []rune
	for _, r := range want {
		if i, err := parsedFont().GlyphIndex(nil, r); err != nil || i == 0 {
			missing = append(missing, r)
		}
	}
	if len(missing) > 0 {
		t.Errorf("the font lacks %d: %q", len(missing), string(missing))
	}
}

func TestThemes(t *testing.T) {
	for name, th := range themes {
		m := weekMenu()
		m.Theme = name
		im, _ := mustRender(t, m)
		sum, size := 0.0, im.Bounds().Size()
		for y := range size.Y {
			for x := range size.X {
				sum += luminance(im.At(x, y))
			}
		}
		mean := sum / float64(size.X*size.Y)
		if name == Dark && mean > 0.1 || name == Light && mean < 0.7 {
			t.Errorf("%s has a mean luminance of %.2f", name, mean)
		}
		// WCAG AA for all text.
		for what, pair := range map[string][2]color.RGBA{"title": {th.title, th.page}, "text": {th.text, th.card}} {
			if c := contrast(pair[0], pair[1]); c < 7 {
				t.Errorf("%s: the contrast of the %s is %.1f", name, what, c)
			}
		}
		for i, day := range th.days {
			if c := contrast(day, mix(th.card, day, th.tint)); c < 4.5 {
				t.Errorf("%s: the contrast of day %d is %.1f", name, i, c)
			}
		}
	}
}

// checkLayout holds what must be true of every layout: all of the menu is there,
// inside its card, in order, and nothing lies over anything else.
func checkLayout(t interface{ Fatalf(string, ...any) }, m Menu) {
	p := lay(m)
	inside := func(what string, b block, outer image.Rectangle) {
		if len(b.lines) == 0 {
			t.Fatalf("%s is empty", what)
		}
		box := image.Rect(b.x, b.y, b.x+b.text.widest(b.lines).Ceil(), b.y+b.height())
		if !box.In(outer) {
			t.Fatalf("%s at %v is not inside %v", what, box, outer)
		}
	}
	frame := image.Rect(p.margin, 0, p.width-p.margin, p.height-p.margin)
	inside("the title", p.title, image.Rect(frame.Min.X, 0, frame.Max.X, p.strip.Min.Y))
	if len(p.cards) != len(m.Days) {
		t.Fatalf("%d cards for %d days", len(p.cards), len(m.Days))
	}
	for i, c := range p.cards {
		if !c.box.In(frame) || c.box.Min.Y <= p.strip.Max.Y {
			t.Fatalf("card %d at %v is not in the frame %v", i, c.box, frame)
		}
		for j := range i {
			if c.box.Overlaps(p.cards[j].box) {
				t.Fatalf("cards %d and %d overlap", i, j)
			}
		}
		inside(m.Days[i].Day, c.day, image.Rect(c.box.Min.X, c.box.Min.Y, c.box.Max.X, c.band))
		if len(c.dishes) != len(m.Days[i].Dishes) {
			t.Fatalf("%d dishes placed, of %d", len(c.dishes), len(m.Days[i].Dishes))
		}
		for j, d := range c.dishes {
			inside(m.Days[i].Dishes[j], d, image.Rect(c.box.Min.X, c.band, c.box.Max.X, c.box.Max.Y).Inset(1))
			if string(d.text.runes) != string(clean(m.Days[i].Dishes[j])) {
				t.Fatalf("dish %d of day %d is %q", j, i, string(d.text.runes))
			}
			if j > 0 && d.x == c.dishes[j-1].x && d.y < c.dishes[j-1].y+c.dishes[j-1].height() {
				t.Fatalf("dish %d of day %d lies over the one before", j, i)
			}
			if j > 0 && d.x < c.dishes[j-1].x {
				t.Fatalf("dish %d of day %d is left of the one before", j, i)
			}
		}
	}
}

func TestLayoutOfTheLargest(t *testing.T) {
	for _, dish := range []string{
		strings.Repeat("番茄炒鸡蛋，", 10), strings.Repeat("Tomato soup ", 5), strings.Repeat("W", 60), strings.Repeat("i", 60),
		strings.Repeat("（", 60), strings.Repeat("，", 60), strings.Repeat("😀", 60), strings.Repeat("ﷺ", 60), strings.Repeat("a\u0301", 30), "面",
	} {
		for _, width := range []int{320, 321, 400, 511, 640, 800, 1023, 1600, 2400} {
			m := fullMenu(dish)
			m.Width = width
			checkLayout(t, m)
			m.Days = m.Days[:1+width%6]
			checkLayout(t, m)
		}
	}
}

func TestLayoutProperty(t *testing.T) {
	words := rapid.SampledFrom([]string{"番茄", "炒蛋", "Tomato", "soup", "（热）", "，", "W", "é", "😀", "supercalifragilistic", "10", " "})
	text := rapid.Custom(func(t *rapid.T) string {
		s := []rune("菜" + strings.Join(rapid.OneOf(rapid.SliceOfN(words, 0, 12), rapid.SliceOfN(words, 8, 30)).Draw(t, "words"), ""))
		return string(s[:min(len(s), MaxDishChars)])
	})
	rapid.Check(t, func(t *rapid.T) {
		m := Menu{Title: text.Draw(t, "title"), Theme: Light, Width: rapid.IntRange(MinWidth, MaxWidth).Draw(t, "width")}
		for range rapid.IntRange(1, MaxDays).Draw(t, "days") {
			m.Days = append(m.Days, Day{text.Draw(t, "day"), rapid.OneOf(rapid.SliceOfN(text, 1, MaxDishes), rapid.SliceOfN(text, 10, MaxDishes)).Draw(t, "dishes")})
		}
		checkLayout(t, m)
	})
}

// Nothing is painted over the edge: the outermost pixels are bare page. Ink that
// were clipped would touch them.
func TestNothingIsClipped(t *testing.T) {
	for _, dish := range []string{strings.Repeat("番茄炒鸡蛋，", 10), strings.Repeat("（番茄）Ågå", 6), strings.Repeat("W", 60)} {
		for _, width := range []int{320, 800, 2400} {
			for _, theme := range []string{Light, Dark} {
				m := fullMenu(dish)
				m.Theme, m.Width = theme, width
				m.Days = m.Days[:2]
				im := paint(lay(m), themes[theme])
				page, size := themes[theme].page, im.Bounds().Size()
				for _, edge := range []image.Rectangle{
					image.Rect(0, 0, size.X, 3), image.Rect(0, size.Y-3, size.X, size.Y),
					image.Rect(0, 0, 3, size.Y), image.Rect(size.X-3, 0, size.X, size.Y),
				} {
					for y := edge.Min.Y; y < edge.Max.Y; y++ {
						for x := edge.Min.X; x < edge.Max.X; x++ {
							if im.RGBAAt(x, y) != page {
								t.Fatalf("%s, %d wide: pixel %d,%d is %v", theme, width, x, y, im.At(x, y))
							}
						}
					}
				}
			}
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	m := weekMenu()
	m.Width = 10
	if _, err := Render(m); err == nil {
		t.Error("a menu 10 pixels wide was rendered")
	}
}

func BenchmarkRender(b *testing.B) {
	for _, width := range []int{320, 800, 2400} {
		b.Run(fmt.Sprintf("week/%d", width), func(b *testing.B) { benchRender(b, weekMenu(), width) })
		b.Run(fmt.Sprintf("largest/%d", width), func(b *testing.B) {
			benchRender(b, fullMenu(strings.Repeat("番茄炒鸡蛋，", 10)), width)
		})
	}
}

func benchRender(b *testing.B, m Menu, width int) {
	m.Width = width
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(m); err != nil {
			b.Fatal(err)
		}
	}
}
