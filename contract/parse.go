package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Parse reads a contract from JSON, as it stands in a configuration file, and validates it. The text is one of
//
//   - the name of a preset: "stripe-v1"
//   - an object of the form of [Contract]
//   - such an object with a member "preset": it is laid over the preset member by member (RFC 7396: objects are merged,
//     anything else is replaced, null removes)
//
// A contract that changes a preset keeps the preset's name unless it has its own. Unknown members are refused. Errors of
// single fields are [*FieldError] values, joined.
func Parse(data []byte) (Contract, error) {
	var name string
	if json.Unmarshal(data, &name) == nil {
		return Preset(name)
	}
	var over map[string]any
	if err := decode(data, &over, false); err != nil {
		return Contract{}, fmt.Errorf("a contract is the name of a preset or an object: %w", err)
	}
	if base, ok := over["preset"]; ok {
		delete(over, "preset")
		name, _ := base.(string)
		preset, err := Preset(name)
		if err != nil {
			return Contract{}, &FieldError{Field: "preset", Problem: err.Error(), Fix: "name one of these"}
		}
		under, err := asMap(preset)
		if err != nil {
			return Contract{}, err
		}
		if data, err = json.Marshal(merge(under, over)); err != nil {
			return Contract{}, err
		}
	}
	var c Contract
	if err := decode(data, &c, true); err != nil {
		return Contract{}, err
	}
	return c, c.Validate()
}

func decode(data []byte, into any, strict bool) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("something follows the contract")
	}
	return nil
}

func asMap(c Contract) (map[string]any, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	return m, decode(data, &m, false)
}

// merge lays over on under (RFC 7396).
func merge(under, over map[string]any) map[string]any {
	for k, v := range over {
		o, ok := v.(map[string]any)
		u, _ := under[k].(map[string]any)
		switch {
		case v == nil:
			delete(under, k)
		case ok && u != nil:
			under[k] = merge(u, o)
		case ok:
			under[k] = merge(map[string]any{}, o)
		default:
			under[k] = v
		}
	}
	return under
}
