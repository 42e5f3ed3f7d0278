package contract

import (
	"fmt"
	"slices"
	"strings"
)

// A Source says where one fact of a preset comes from.
type Source struct {
	// Field is the path of the fact in the contract's JSON.
	Field string
	// From names the document.
	From string
	// Unverified says that nobody has confirmed the fact against a document that its owner publishes, or that the
	// document leaves it open and this is an assumption on the careful side.
	Unverified bool
}

// preset is a contract with the sources of its facts. make returns a fresh copy each time, so that nobody can change
// somebody else's.
type preset struct {
	make    func() Contract
	sources []Source
}

// presets are in the order of the documentation.
var presets = []preset{
	{ietf, ietfSources}, {stripeV1, stripeSources}, {aip155, aipSources}, {azure, azureSources},
	{increase, increaseSources}, {semel, semelSources},
	{idempotent, idempotentSources}, {queryable, queryableSources}, {opaque, opaqueSources},
}

// Preset returns the preset of that name. The error names those that there are. Every call returns a copy of its own.
func Preset(name string) (Contract, error) {
	var names []string
	for _, p := range presets {
		c := p.make()
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Contract{}, fmt.Errorf("there is no preset %q; there are %s", name, strings.Join(names, ", "))
}

// Presets returns all presets, in the order of the documentation. Every call returns copies of its own.
func Presets() []Contract {
	all := make([]Contract, len(presets))
	for i, p := range presets {
		all[i] = p.make()
	}
	return all
}

// Sources returns where the facts of a preset come from, one for each field or group of fields that it sets; nil for a
// name that is no preset's.
func Sources(name string) []Source {
	for _, p := range presets {
		if p.make().Name == name {
			return slices.Clone(p.sources)
		}
	}
	return nil
}

// statuses makes matches of bare status codes.
func statuses(codes ...int) []Match {
	list := make([]Match, len(codes))
	for i, c := range codes {
		list[i] = Match{Status: c}
	}
	return list
}

// rejections are the client errors (RFC 9110, section 15.5, and RFC 6585) by which a server says that it did not do
// what it was asked. 408, 409, 425 and 429 are not among them: they speak of time, not of the request.
func rejections(without ...int) []Match {
	all := []int{400, 401, 402, 403, 404, 405, 406, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 428, 431, 451}
	return statuses(slices.DeleteFunc(all, func(s int) bool { return slices.Contains(without, s) })...)
}
