package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/semel-dev/semel"
)

func ExampleError() {
	err := fmt.Errorf("placing the order: %w", &semel.Error{Op: "accept", Code: semel.CodeMismatch,
		Key: semel.Key{Account: "acme", Kind: "order", ID: "17"}, Fields: []string{"/amount"}})

	var e *semel.Error
	if errors.As(err, &e) && errors.Is(err, semel.ErrMismatch) {
		fmt.Println(e.Code.Info().Status, e.Fields, e.WasRecorded())
	}
	// Output: 409 [/amount] no
}

func TestEveryCodeHasFacts(t *testing.T) {
	for _, c := range semel.Codes() {
		info := c.Info()
		if info.Status < 400 || info.Title == "" || info.Recorded == "" {
			t.Errorf("%s: %+v", c, info)
		}
	}
}

func TestAsError(t *testing.T) {
	if semel.AsError("get", nil) != nil {
		t.Error("nil became an error")
	}
	if e := semel.AsError("get", context.Canceled); e.Code != semel.CodeUnavailable || !errors.Is(e, context.Canceled) {
		t.Errorf("cancelled: %v", e)
	}
	if e := semel.AsError("get", errors.New("x")); e.Code != semel.CodeInternal {
		t.Errorf("foreign: %v", e)
	}
}
