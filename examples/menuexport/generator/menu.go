package generator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// The two looks of a picture.
const (
	Light = "light"
	Dark  = "dark"
)

// What a menu may hold. Lengths are in characters (code points), widths in pixels.
const (
	MaxDays       = 7
	MaxDishes     = 20
	MaxDishChars  = 60
	MaxDayChars   = 60
	MaxTitleChars = 120
	MinWidth      = 320
	MaxWidth      = 2400
	DefaultWidth  = 800
)

// Menu is a weekly menu: the parameters of one picture.
type Menu struct {
	Title string `json:"title"` // 1 to MaxTitleChars characters
	Days  []Day  `json:"days"`  // 1 to MaxDays
	Theme string `json:"theme"` // Light or Dark. Defaults to Light
	Width int    `json:"width"` // of the picture, MinWidth to MaxWidth pixels. Defaults to DefaultWidth
}

// Day is what there is to eat on one day.
type Day struct {
	Day    string   `json:"day"`    // its name or date, 1 to MaxDayChars characters
	Dishes []string `json:"dishes"` // 1 to MaxDishes, each 1 to MaxDishChars characters
}

// InputError says which member of a menu is wrong, and why.
type InputError struct {
	Field  string // JSON Pointer into the body; "" is the body itself
	Reason string
}

func (e *InputError) Error() string {
	if e.Field == "" {
		return "the body " + e.Reason
	}
	return e.Field + " " + e.Reason
}

// ParseMenu reads a menu from JSON, fills in the defaults and checks it. Unknown
// members, invalid UTF-8 and trailing data are refused. Its error is an
// [*InputError].
func ParseMenu(body []byte) (Menu, error) {
	// Pointers tell an absent member, which has a default, from a zero, which
	// is wrong. A float takes 800.0 too, which is the same JSON number as 800.
	var in struct {
		Title string   `json:"title"`
		Days  []Day    `json:"days"`
		Theme *string  `json:"theme"`
		Width *float64 `json:"width"`
	}
	if err := decodeStrict(body, &in); err != nil {
		return Menu{}, err
	}
	m := Menu{Title: in.Title, Days: in.Days, Theme: Light, Width: DefaultWidth}
	if in.Theme != nil {
		m.Theme = *in.Theme
	}
	if in.Width != nil {
		if *in.Width != math.Trunc(*in.Width) || math.Abs(*in.Width) > 1e6 {
			return Menu{}, &InputError{"/width", widthReason}
		}
		m.Width = int(*in.Width)
	}
	return m, m.Validate()
}

// decodeStrict reads one JSON value with known members only into v. Its error is
// an *InputError.
func decodeStrict(body []byte, v any) error {
	if !utf8.Valid(body) {
		return &InputError{"", "is not valid UTF-8"}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return decodeError(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return &InputError{"", "has something after its end"}
	}
	return nil
}

// decodeError turns an error of [json.Decoder] into one that names the member.
func decodeError(err error) error {
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := typ.Field
		if field != "" {
			field = "/" + strings.ReplaceAll(field, ".", "/")
		}
		return &InputError{field, "must not be a JSON " + typ.Value}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &InputError{"/" + strings.Trim(name, `"`), "is not known here"}
	}
	return &InputError{"", "is not JSON: " + strings.TrimPrefix(err.Error(), "json: ")}
}

var widthReason = fmt.Sprintf("must be a whole number from %d to %d", MinWidth, MaxWidth)

// Validate reports the first member that is out of bounds, as an [*InputError].
func (m Menu) Validate() error {
	if err := checkText("/title", m.Title, MaxTitleChars); err != nil {
		return err
	}
	if len(m.Days) < 1 || len(m.Days) > MaxDays {
		return &InputError{"/days", fmt.Sprintf("must hold 1 to %d days", MaxDays)}
	}
	for i, day := range m.Days {
		at := fmt.Sprintf("/days/%d", i)
		if err := checkText(at+"/day", day.Day, MaxDayChars); err != nil {
			return err
		}
		if len(day.Dishes) < 1 || len(day.Dishes) > MaxDishes {
			return &InputError{at + "/dishes", fmt.Sprintf("must hold 1 to %d dishes", MaxDishes)}
		}
		for j, dish := range day.Dishes {
			if err := checkText(fmt.Sprintf("%s/dishes/%d", at, j), dish, MaxDishChars); err != nil {
				return err
			}
		}
	}
	if m.Theme != Light && m.Theme != Dark {
		return &InputError{"/theme", `must be "light" or "dark"`}
	}
	if m.Width < MinWidth || m.Width > MaxWidth {
		return &InputError{"/width", widthReason}
	}
	return nil
}

// checkText wants 1 to most characters, at least one of which can be seen.
func checkText(field, s string, most int) error {
	if n := utf8.RuneCountInString(s); n < 1 || n > most {
		return &InputError{field, fmt.Sprintf("must have 1 to %d characters", most)}
	}
	if len(clean(s)) == 0 {
		return &InputError{field, "must have a character that can be seen"}
	}
	return nil
}
