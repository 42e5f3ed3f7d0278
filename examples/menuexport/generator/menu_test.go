package generator

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

const weekJSON = `{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","米饭"]}]}`

func TestParseMenuDefaults(t *testing.T) {
	m, err := ParseMenu([]byte(weekJSON))
	if err != nil {
		t.Fatal(err)
	}
	want := Menu{Title: "本周菜单", Days: []Day{{"周一", []string{"番茄炒蛋", "米饭"}}}, Theme: Light, Width: DefaultWidth}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

func TestParseMenuSameRequest(t *testing.T) {
	base, err := ParseMenu([]byte(weekJSON))
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		strings.TrimSuffix(weekJSON, "}") + `,"width":800.0,"theme":"light"}`,
		strings.TrimSuffix(weekJSON, "}") + `,"width":8e2 }  ` + "\n",
		`{"days":[{"dishes":["番茄炒蛋","\u7c73饭"],"day":"周一"}],"title":"本周菜单"}`,
	} {
		m, err := ParseMenu([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if digest(m) != digest(base) {
			t.Errorf("%s is another menu", body)
		}
	}
}

func TestParseMenuRefuses(t *testing.T) {
	long := func(n int) string { return strings.Repeat("面", n) }
	list := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	day := func(name, dishes string) string { return `{"day":"` + name + `","dishes":[` + dishes + `]}` }
	menu := func(title, days, rest string) string {
		return `{"title":"` + title + `","days":[` + days + `]` + rest + `}`
	}
	ok := day("周一", `"米饭"`)
	tests := []struct{ name, body, field string }{
		{"no title", `{"days":[` + ok + `]}`, "/title"},
		{"empty title", menu("", ok, ""), "/title"},
		{"blank title", menu(` \t\u3000\u200b`, ok, ""), "/title"},
		{"long title", menu(long(MaxTitleChars+1), ok, ""), "/title"},
		{"title is a number", `{"title":1,"days":[` + ok + `]}`, "/title"},
		{"no days", `{"title":"a"}`, "/days"},
		{"0 days", menu("a", "", ""), "/days"},
		{"8 days", menu("a", list(8, ok), ""), "/days"},
		{"no day name", menu("a", `{"dishes":["米饭"]}`, ""), "/days/0/day"},
		{"long day name", menu("a", day(long(MaxDayChars+1), `"a"`), ""), "/days/0/day"},
		{"no dishes", menu("a", ok+","+day("b", ""), ""), "/days/1/dishes"},
		{"21 dishes", menu("a", day("b", list(21, `"米饭"`)), ""), "/days/0/dishes"},
		{"empty dish", menu("a", day("b", `"米饭",""`), ""), "/days/0/dishes/1"},
		{"null dish", menu("a", day("b", `null`), ""), "/days/0/dishes/0"},
		{"blank dish", menu("a", day("b", `"\n"`), ""), "/days/0/dishes/0"},
		{"long dish", menu("a", day("b", `"`+long(61)+`"`), ""), "/days/0/dishes/0"},
		{"theme", menu("a", ok, `,"theme":"sepia"`), "/theme"},
		{"empty theme", menu("a", ok, `,"theme":""`), "/theme"},
		{"narrow", menu("a", ok, `,"width":319`), "/width"},
		{"wide", menu("a", ok, `,"width":2401`), "/width"},
		{"zero width", menu("a", ok, `,"width":0`), "/width"},
		{"huge width", menu("a", ok, `,"width":1e300`), "/width"},
		{"half a pixel", menu("a", ok, `,"width":800.5`), "/width"},
		{"width as text", menu("a", ok, `,"width":"800"`), "/width"},
		{"unknown member", menu("a", ok, `,"heigth":1`), "/heigth"},
		{"not UTF-8", menu("\xff", ok, ""), ""},
		{"trailing data", weekJSON + "{}", ""},
		{"trailing brace", weekJSON + "}", ""},
		{"cut short", weekJSON[:40], ""},
		{"nothing", "", ""},
		{"a list", "[]", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseMenu([]byte(test.body))
			in, isInput := errors.AsType[*InputError](err)
			if !isInput {
				t.Fatalf("got %v, want an *InputError", err)
			}
			if in.Field != test.field {
				t.Errorf("field %q (%v), want %q", in.Field, err, test.field)
			}
		})
	}
}

func TestParseMenuBounds(t *testing.T) {
	m := fullMenu(strings.Repeat("面", MaxDishChars))
	m.Title = strings.Repeat("菜", MaxTitleChars)
	for _, width := range []int{MinWidth, MaxWidth} {
		m.Width = width
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseMenu(body); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParseMenu(f *testing.F) {
	f.Add([]byte(weekJSON))
	f.Add([]byte(`{"title":"a","days":[{"day":"b","dishes":["c"]}],"theme":"dark","width":2400}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := ParseMenu(body)
		if err != nil {
			if _, ok := errors.AsType[*InputError](err); !ok {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		m2, err := ParseMenu(again)
		if err != nil || digest(m2) != digest(m) {
			t.Fatalf("%s does not come back: %v", again, err)
		}
		if _, err := Render(m); err != nil {
			t.Fatal(err)
		}
	})
}
