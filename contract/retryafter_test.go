package contract_test

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	const longest = time.Duration(math.MaxInt64)
	for _, c := range []struct {
		value, date string
		want        time.Duration
		ok          bool
	}{
		{value: "0", ok: true},
		{value: "120", want: 2 * time.Minute, ok: true},
		{value: " 120\t", want: 2 * time.Minute, ok: true},
		{value: "007", want: 7 * time.Second, ok: true},
		{value: "9223372036", want: 9223372036 * time.Second, ok: true},
		{value: "9223372037", want: longest, ok: true}, // one more than a Duration holds
		{value: "9223372036854775807", want: longest, ok: true},
		{value: strings.Repeat("9", 400), want: longest, ok: true},
		{value: ""}, {value: " "}, {value: "-1"}, {value: "+1"}, {value: "1.5"}, {value: "1e3"}, {value: "0x10"},
		{value: "soon"}, {value: "12 monkeys"}, {value: "١٢"}, {value: "2026-11-30T12:00:10Z"},

		// The three forms of a date, by this machine's clock where there is no other.
		{value: "Mon, 30 Nov 2026 12:00:10 GMT", want: 10 * time.Second, ok: true},
		{value: "Monday, 30-Nov-26 12:00:10 GMT", want: 10 * time.Second, ok: true},
		{value: "Mon Nov 30 12:00:10 2026", want: 10 * time.Second, ok: true},
		{value: "Tue Dec  1 12:00:00 2026", want: 24 * time.Hour, ok: true},
		{value: "Mon, 30 Nov 2026 11:59:00 GMT", ok: true}, // past

		// The other side's clock is two hours ahead, or two hours behind.
		{value: "Mon, 30 Nov 2026 14:00:10 GMT", date: "Mon, 30 Nov 2026 14:00:00 GMT", want: 10 * time.Second, ok: true},
		{value: "Mon, 30 Nov 2026 10:00:10 GMT", date: "Mon, 30 Nov 2026 10:00:00 GMT", want: 10 * time.Second, ok: true},
		{value: "Monday, 30-Nov-26 10:00:10 GMT", date: "Monday, 30-Nov-26 10:00:00 GMT", want: 10 * time.Second, ok: true},
		{value: "Mon, 30 Nov 2026 12:00:10 GMT", date: "yesterday", want: 10 * time.Second, ok: true},

		// Two digits mean the past where they would be more than 50 years ahead.
		{value: "Monday, 30-Nov-76 12:00:00 GMT", want: 50 * 365 * 24 * time.Hour, ok: true}, // the years' length aside
		{value: "Tuesday, 30-Nov-77 12:00:00 GMT", ok: true},
		{value: "Sunday, 06-Nov-94 08:49:37 GMT", ok: true},
		{value: "Fri, 31 Dec 9999 23:59:59 GMT", want: longest, ok: true},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.value)
		if c.date != "" {
			h.Set("Date", c.date)
		}
		got, ok := contract.RetryAfter(h, now)
		if c.want > 40*365*24*time.Hour && c.want < 60*365*24*time.Hour {
			got = got.Truncate(365 * 24 * time.Hour)
		}
		if got != c.want || ok != c.ok {
			t.Errorf("Retry-After %q, Date %q: %s %t; want %s %t", c.value, c.date, got, ok, c.want, c.ok)
		}
	}
	if got, ok := contract.RetryAfter(http.Header{"Retry-After": {"5", "60", "nonsense"}}, now); got != time.Minute || !ok {
		t.Errorf("of several, the longest counts: %s %t", got, ok)
	}
	if _, ok := contract.RetryAfter(nil, now); ok {
		t.Error("nothing was asked for")
	}
}

// Whatever stands there, the wait is never negative, never shorter than whole seconds
// say, and does not depend on this machine's clock where the answer has a date.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"0", "120", "9223372037", "-1", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994", "Thursday, 29-Feb-00 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(s, "Sun, 06 Nov 1994 08:49:30 GMT", int64(1_800_000_000))
		f.Add(s, "", int64(0))
	}
	f.Fuzz(func(t *testing.T, value, date string, unix int64) {
		now := time.Unix(unix%(1<<33), 0)
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		wait, ok := contract.RetryAfter(h, now)
		if wait < 0 || !ok && wait != 0 {
			t.Fatalf("%s %t", wait, ok)
		}
		if n, err := strconv.ParseUint(strings.Trim(value, " \t"), 10, 64); err == nil && strings.Trim(value, " \t0123456789") == "" {
			if !ok || n <= math.MaxInt64/uint64(time.Second) && wait != time.Duration(n)*time.Second || n > math.MaxInt64/uint64(time.Second) && wait != math.MaxInt64 {
				t.Fatalf("%q became %s %t", value, wait, ok)
			}
		}
		if _, err := http.ParseTime(date); err == nil && ok {
			later, _ := contract.RetryAfter(h, now.Add(time.Hour))
			if later != wait && !strings.Contains(value, "-") && !strings.Contains(date, "-") { // two digits of a year need a clock
				t.Fatalf("%s by one clock, %s by another", wait, later)
			}
		}
	})
}
