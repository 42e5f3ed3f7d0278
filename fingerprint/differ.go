package fingerprint

import (
	"bytes"
	"slices"
	"strconv"
)

// MaxDiffer is how many places [Differ] names at most.
const MaxDiffer = 20

// maxPointer is the length in bytes up to which a pointer is worth showing.
const maxPointer = 1024

// Differ names the places where a and b differ, as JSON Pointers, at most
// [MaxDiffer] of them: in the order of the canonical form, without any value,
// and always the same for the same two values. It is nil when a and b are equal.
//
// A member that only one of them has is named, not what is in it. Arrays are
// compared item by item; when one is longer, the first item that the other lacks
// stands for all the rest. Values of different types differ as a whole. A
// pointer of more than 1024 bytes is shortened to its nearest ancestor that fits.
func Differ(a, b Value) []string {
	d := differ{}
	d.compare(a, b)
	return d.found
}

type differ struct {
	found []string
	at    []byte // where the walk is
}

func (d *differ) compare(a, b Value) {
	switch {
	case a.typ != b.typ:
		d.note()
	case a.typ == Array:
		d.arrays(a, b)
	case a.typ == Object:
		d.objects(a, b)
	case !Equal(a, b):
		d.note()
	}
}

func (d *differ) full() bool { return len(d.found) == MaxDiffer }

func (d *differ) note() {
	at := d.at
	for len(at) > maxPointer {
		at = at[:bytes.LastIndexByte(at, '/')]
	}
	// Two places can be shortened to the same one.
	if !slices.Contains(d.found, string(at)) {
		d.found = append(d.found, string(at))
	}
}

// under runs f one token deeper.
func (d *differ) under(token string, f func()) {
	n := len(d.at)
	d.at = AppendPointer(d.at, token)
	f()
	d.at = d.at[:n]
}

func (d *differ) arrays(a, b Value) {
	n := min(len(a.kids), len(b.kids))
	for i := 0; i < n && !d.full(); i++ {
		d.under(strconv.Itoa(i), func() { d.compare(a.kids[i].Value, b.kids[i].Value) })
	}
	if len(a.kids) != len(b.kids) && !d.full() {
		d.under(strconv.Itoa(n), d.note)
	}
}

// objects merges the members of both in canonical order.
func (d *differ) objects(a, b Value) {
	oa, ob := order(nil, a), order(nil, b)
	for i, j := 0, 0; (i < len(a.kids) || j < len(b.kids)) && !d.full(); {
		var ma, mb *Member
		if i < len(a.kids) {
			ma = &a.kids[at(oa, i)]
		}
		if j < len(b.kids) {
			mb = &b.kids[at(ob, j)]
		}
		switch {
		case mb == nil || ma != nil && compareNames(ma.Name, mb.Name) < 0:
			d.under(ma.Name, d.note)
			i++
		case ma == nil || ma.Name != mb.Name:
			d.under(mb.Name, d.note)
			j++
		default:
			d.under(ma.Name, func() { d.compare(ma.Value, mb.Value) })
			i, j = i+1, j+1
		}
	}
}
