// Package menuexport is the whole path in one example: a person types a weekly
// menu into a page, and it becomes a picture, once.
//
//   - the page (folder page) makes the operation ID and sends the menu,
//   - [Kind] says what a menu is: a JSON Schema with defaults,
//   - [NewEffect] calls the image generator (package generator), an external
//     service with a storage and a contract of its own,
//   - [Images] serves the pictures to the account that owns them.
//
// Command `semel demo` runs it as three processes, with switches that cause real
// faults between them.
package menuexport

import (
	_ "embed"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schema"
)

// KindName is the kind of a menu export.
const KindName = "menu-export"

// Schema is the JSON Schema of its parameters.
//
//go:embed menu.schema.json
var Schema []byte

// Kind returns the kind of a menu export.
func Kind() (semel.Kind, error) {
	canon, err := schema.Compile(KindName, Schema, nil)
	return semel.Kind{Name: KindName, Canon: canon, Description: "A weekly menu, as a picture."}, err
}
