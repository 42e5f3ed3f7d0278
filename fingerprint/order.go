package fingerprint

import "slices"

// smallObject is the number of members up to which an object is sorted without
// allocating.
const smallObject = 16

// compareNames orders member names by their UTF-16 code units, as RFC 8785
// asks. UTF-8 bytes have that order already, except that a code point beyond
// U+FFFF (lead byte F0 and above) is a surrogate in UTF-16 and so comes before
// U+E000 to U+FFFF (lead bytes EE and EF).
func compareNames(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			x, y = y, x
		}
		if x < y {
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}

// inOrder reports whether the members are in canonical order, which also means
// that no name occurs twice.
func inOrder(kids []Member) bool {
	for i := 1; i < len(kids); i++ {
		if compareNames(kids[i-1].Name, kids[i].Name) >= 0 {
			return false
		}
	}
	return true
}

// canonicalOrder appends to buf the indexes of kids in canonical order; equal
// names keep their order.
func canonicalOrder(buf []int, kids []Member) []int {
	for i := range kids {
		buf = append(buf, i)
	}
	slices.SortFunc(buf, func(i, j int) int {
		if c := compareNames(kids[i].Name, kids[j].Name); c != 0 {
			return c
		}
		return i - j
	})
	return buf
}

// duplicate is the index of a member whose name occurred before, or -1. The
// earliest such member wins, so that the error is always the same.
func duplicate(kids []Member, sorted []int) int {
	found := -1
	for i := 1; i < len(sorted); i++ {
		if kids[sorted[i-1]].Name == kids[sorted[i]].Name && (found < 0 || sorted[i] < found) {
			found = sorted[i]
		}
	}
	return found
}

// order is the canonical order of an object's members, nil when they are in it
// already. buf is used when it is large enough.
func order(buf []int, v Value) []int {
	if v.flag {
		return nil
	}
	return canonicalOrder(buf, v.kids)
}

// at reads an order made by [order].
func at(order []int, i int) int {
	if order == nil {
		return i
	}
	return order[i]
}
