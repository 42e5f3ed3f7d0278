package generator

import "image/color"

// theme holds the colours of one look. All are opaque.
type theme struct {
	page, card, border color.RGBA
	title, text        color.RGBA
	shadow             int           // darkness of a card's shadow at its edge, 0 to 255
	tint               int           // how much of a day's colour its heading band has, in percent
	days               [7]color.RGBA // one colour per day, in order
}

var themes = map[string]*theme{
	Light: {
		page: rgb(0xf6f2ea), card: rgb(0xffffff), border: rgb(0xe8e0d2),
		title: rgb(0x2b2622), text: rgb(0x37312c),
		shadow: 9, tint: 9,
		days: [7]color.RGBA{rgb(0xb93a26), rgb(0x9a5408), rgb(0x666510), rgb(0x2a7146), rgb(0x10707c), rgb(0x4157ae), rgb(0x8b3f78)},
	},
	Dark: {
		page: rgb(0x14161a), card: rgb(0x1e2127), border: rgb(0x2d3138),
		title: rgb(0xf4efe7), text: rgb(0xdcd7cf),
		shadow: 60, tint: 13,
		days: [7]color.RGBA{rgb(0xff8e75), rgb(0xf3b35f), rgb(0xcdcf6c), rgb(0x86d3a2), rgb(0x72cbd8), rgb(0xa3b4ff), rgb(0xe6a2d6)},
	},
}

func rgb(hex uint32) color.RGBA {
	return color.RGBA{uint8(hex >> 16), uint8(hex >> 8), uint8(hex), 0xff}
}

// mix returns under with percent of over laid on it.
func mix(under, over color.RGBA, percent int) color.RGBA {
	f := func(u, o uint8) uint8 { return uint8((int(u)*(100-percent) + int(o)*percent + 50) / 100) }
	return color.RGBA{f(under.R, over.R), f(under.G, over.G), f(under.B, over.B), 0xff}
}
