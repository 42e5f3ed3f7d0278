package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// onOperation runs handle on the operation in the path. What the operator may not
// see and what does not exist get the same answer, so that nobody learns what
// there is.
func (c *call) onOperation(handle func() error) error {
	key := semel.Key{Account: c.path["account"], Kind: c.path["kind"], ID: c.path["operation_id"]}
	if err := key.Validate(); err != nil {
		return err
	}
	err := error(semel.ErrNotFound)
	if c.who.Sees(key.Account) {
		c.key = key
		err = handle()
	}
	if errors.Is(err, semel.ErrNotFound) {
		return &semel.Error{Code: semel.CodeNotFound, Msg: "nothing is recorded under this key in the accounts that you may see"}
	}
	return err
}

func (c *call) operatorGet() error {
	return c.onOperation(func() error {
		op, err := c.s.ledger.Get(c.r.Context(), c.key)
		if err != nil {
			return err
		}
		return c.found(op)
	})
}

func (c *call) operatorHistory() error { return c.onOperation(c.history) }

func (c *call) operatorResolve() error { return c.onOperation(c.resolve) }

// operatorList lists operations of the accounts that the operator sees. Naming
// another account is an empty list.
func (c *call) operatorList() error {
	q, values, err := c.listQuery("account", "unacknowledged")
	if err != nil {
		return err
	}
	if q.Unacknowledged, err = flag(values, "unacknowledged"); err != nil {
		return err
	}
	if !slices.Contains(c.who.Accounts, "*") {
		q.Accounts = append([]string{}, c.who.Accounts...)
	}
	if account, ok := values["account"]; ok {
		q.Accounts = []string{}
		if c.who.Sees(account) {
			q.Accounts = []string{account}
		}
	}
	if q.Accounts != nil && len(q.Accounts) == 0 {
		return c.json(http.StatusOK, pageView{Operations: []semel.Operation{}})
	}
	return c.page(q)
}

func flag(values map[string]string, name string) (bool, error) {
	switch values[name] {
	case "":
		return false, nil
	case "true", "false":
		return values[name] == "true", nil
	}
	return false, invalid("%s is true or false", name)
}

// stats tells counts over all accounts, so it is for operators who see them all.
func (c *call) stats() error {
	if !slices.Contains(c.who.Accounts, "*") {
		return &semel.Error{Code: semel.CodeForbidden, Msg: "the counts are over all accounts, and this operator does not see them all",
			Hint: "list the operations of an account instead"}
	}
	stats, err := c.s.ledger.Stats(c.r.Context())
	if err != nil {
		return err
	}
	if stats.Kinds == nil {
		stats.Kinds = []semel.KindStats{}
	}
	return c.json(http.StatusOK, stats)
}

// resolve records a verdict.
func (c *call) resolve() error {
	revision, err := c.ifMatch()
	if err != nil {
		return err
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	r := semel.Resolution{}
	reader := json.NewDecoder(bytes.NewReader(body))
	reader.DisallowUnknownFields()
	if reader.Decode(&r) != nil {
		e := invalid("the verdict can't be read; nothing was changed")
		e.Hint = `it is an object of "verdict", "then", "result" and "evidence"`
		return e
	}
	if string(r.Result) == "null" { // as good as absent
		r.Result = nil
	}
	r.By, r.Revision = c.who.name(), revision
	if r.Then == "retry" {
		if r.Wait, err = c.absentAfter(); err != nil {
			return err
		}
	}
	op, err := c.s.ledger.Resolve(c.r.Context(), c.key, r)
	if err != nil {
		return err
	}
	return c.operation(http.StatusOK, op)
}

// absentAfter is how long a retry waits for a request that may still be on its
// way: the longest that a contract of its executions says.
func (c *call) absentAfter() (time.Duration, error) {
	h, err := c.s.ledger.History(c.r.Context(), c.key)
	var longest time.Duration
	for _, x := range h.Executions {
		var promise contract.Contract
		if json.Unmarshal([]byte(x.Contract), &promise) == nil {
			longest = max(longest, promise.LookUp.AbsentAfter.D())
		}
	}
	return longest, err
}
