package httpapi

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
)

// A kindView is what GET /v1/kinds tells.
type kindView struct {
	Kind        string `json:"kind"`
	Description string `json:"description,omitempty"`
	// Contract says in words what is promised about repeats.
	Contract         string `json:"contract,omitempty"`
	RetentionSeconds int64  `json:"retention_seconds"`
	// SchemaVersion names the definition, and Schema is the JSON Schema of the
	// parameters, absent where the kind has none.
	SchemaVersion string          `json:"schema_version"`
	Schema        json.RawMessage `json:"schema,omitempty"`
}

func viewKind(k semel.Kind) kindView {
	v := kindView{Kind: k.Name, Description: k.Description, Contract: k.Contract,
		RetentionSeconds: int64(k.Retention / time.Second), SchemaVersion: k.Canon.Version()}
	schema := k.Canon.Definition()
	if c, ok := k.Canon.(interface{ Schema() []byte }); ok {
		schema = c.Schema()
	}
	if json.Valid(schema) {
		v.Schema = schema
	}
	return v
}

func (c *call) kind() error {
	k, err := c.s.ledger.Kind(c.path["kind"])
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, viewKind(k))
}

func (c *call) kinds() error {
	view := struct {
		Kinds []kindView `json:"kinds"`
	}{[]kindView{}}
	for _, k := range c.s.ledger.Kinds() {
		view.Kinds = append(view.Kinds, viewKind(k))
	}
	return c.json(http.StatusOK, view)
}

// OpenAPI is the description of the interface, as served under /openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte

func (c *call) openAPI() error {
	c.w.Header().Set("Content-Type", "application/yaml")
	c.w.Header().Set("X-Content-Type-Options", "nosniff")
	c.w.Write(OpenAPI)
	return nil
}

type healthView struct {
	Status string `json:"status"`
}

// health says that the process answers.
func (c *call) health() error { return c.json(http.StatusOK, healthView{"ok"}) }

// ready says whether requests should be sent here: the store can be read, and the
// server is not about to stop.
func (c *call) ready() error {
	if c.s.draining.Err() != nil {
		return &semel.Error{Code: semel.CodeUnavailable, Recorded: semel.RecordedNo, Msg: "this server is about to stop"}
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), 2*time.Second)
	defer cancel()
	if err := c.s.ledger.Ping(ctx); err != nil {
		return &semel.Error{Code: semel.CodeUnavailable, Recorded: semel.RecordedNo, Msg: "the store can't be read", Err: err}
	}
	return c.json(http.StatusOK, healthView{"ready"})
}

func (c *call) metrics() error {
	c.s.opts.Metrics.ServeHTTP(c.w, c.r)
	return nil
}
