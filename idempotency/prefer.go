package idempotency

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// preferredWait reads the preference "wait" of RFC 7240. What can't be read is as
// if it were not there.
func preferredWait(r *http.Request, longest time.Duration) (wait time.Duration, there bool) {
	for _, line := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			value, _, _ = strings.Cut(value, ";")
			seconds, err := strconv.ParseUint(strings.Trim(value, " \t\""), 10, 31)
			if err != nil {
				return 0, false
			}
			return min(time.Duration(seconds)*time.Second, longest), true
		}
	}
	return 0, false
}
