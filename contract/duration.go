package contract

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span that is written as Go duration text ("24h", "1m30s"), with days allowed in front ("30d",
// "1d12h"; a day is 24 hours). The zero Duration means "not said".
type Duration time.Duration

const day = 24 * time.Hour

// D returns d as a [time.Duration].
func (d Duration) D() time.Duration { return time.Duration(d) }

// String returns the shortest text that [ParseDuration] reads back as d. Whole weeks and longer whole days are told
// in days.
func (d Duration) String() string {
	t := time.Duration(d)
	if t >= 7*day && t%day == 0 {
		return strconv.FormatInt(int64(t/day), 10) + "d"
	}
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText returns the text of [Duration.String].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [ParseDuration] reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// ParseDuration reads Go duration text with days allowed in front: "90s", "24h", "30d", "1d12h". It refuses a bare
// number, because nobody can tell its unit, and a span that does not fit.
func ParseDuration(text string) (Duration, error) {
	bad := func() (Duration, error) {
		return 0, fmt.Errorf("%q is not a duration: write it as in 90s, 24h, 30d or 1d12h", text)
	}
	days, rest, found := strings.Cut(text, "d")
	if !found {
		t, err := time.ParseDuration(text)
		if err != nil || text == "0" || text == "+0" || text == "-0" {
			return bad()
		}
		return Duration(t), nil
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > uint64(math.MaxInt64/day) {
		return bad()
	}
	total := time.Duration(n) * day
	if rest != "" {
		t, err := time.ParseDuration(rest)
		if err != nil || t < 0 || rest[0] == '+' || total > math.MaxInt64-t {
			return bad()
		}
		total += t
	}
	return Duration(total), nil
}
