package contract

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads how long an answer asks its reader to wait. ok is false where
// it does not ask, or not in a form that RFC 9110 knows: whole seconds, or a date
// in one of HTTP's three forms.
//
// A date is compared with the answer's own Date, so that the other side's clock
// need not be right; now is used where there is none. What lies in the past is
// zero. What is too long for a [time.Duration] is the longest one.
func RetryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	values := h["Retry-After"]
	if len(values) == 0 {
		return 0, false
	}
	for _, v := range values { // a proxy may have added one: the longest counts
		if w, good := retryAfter(v, h, now); good {
			wait, ok = max(wait, w), true
		}
	}
	return wait, ok
}

func retryAfter(text string, h http.Header, now time.Time) (time.Duration, bool) {
	text = strings.Trim(text, " \t")
	if text == "" {
		return 0, false
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > math.MaxInt64/int64(time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, ok := parseDate(text, now)
	if !ok {
		return 0, false
	}
	if date, ok := parseDate(h.Get("Date"), now); ok {
		now = date
	}
	return max(at.Sub(now), 0), true // Sub saturates
}

// parseDate reads one of HTTP's three forms of a date. The two digits of an
// RFC 850 year mean the past where they would be more than 50 years ahead
// (RFC 9110, section 5.6.7).
func parseDate(text string, now time.Time) (time.Time, bool) {
	t, err := http.ParseTime(text)
	if err != nil {
		return time.Time{}, false
	}
	if _, err := time.Parse(time.RFC850, text); err == nil {
		century := now.Year() / 100 * 100
		year := century + t.Year()%100
		for _, y := range [...]int{year + 100, year, year - 100} {
			if y <= now.Year()+50 {
				return time.Date(y, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC), true
			}
		}
	}
	return t, true
}
