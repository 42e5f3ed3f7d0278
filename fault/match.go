package fault

import (
	"net/http"
	"slices"
	"strings"
)

// facts is what a rule's selectors look at.
type facts struct {
	method, path, host string
	header             http.Header
}

func (r *Rule) selects(f facts) bool {
	if r.Method != "" && !slices.Contains(strings.Split(r.Method, ","), f.method) {
		return false
	}
	if r.Path != "" && !glob(r.Path, f.path, '/') {
		return false
	}
	if r.Host != "" && !glob(r.Host, f.host, 0) {
		return false
	}
	for _, want := range r.Header {
		found := slices.ContainsFunc(f.header.Values(want.Name), func(v string) bool {
			return want.Value == "" || glob(want.Value, v, 0)
		})
		if !found {
			return false
		}
	}
	return true
}

// armed is a rule with its counters, guarded by Injector.mu.
type armed struct {
	Rule
	seen, applied int
}

// due counts one selected request and reports whether it is one of those that
// the rule is for. The caller adds to applied only where the rule wins.
func (a *armed) due() bool {
	a.seen++
	n := a.seen
	switch {
	case a.Nth > 0:
		return n == a.Nth
	case n <= a.After:
		return false
	case a.Every > 0 && (n-a.After)%a.Every != 0:
		return false
	case a.Prob > 0 && chance(a.Seed, uint64(n)) >= a.Prob:
		return false
	}
	return a.Count == 0 || a.applied < a.Count
}

// chance returns the nth number in [0,1) of the sequence that seed begins. It
// depends on nothing else, so concurrent requests cannot change which numbers
// are hit (splitmix64).
func chance(seed, n uint64) float64 {
	z := (seed+0x632be59bd9b4e019)*0x9e3779b97f4a7c15 + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
