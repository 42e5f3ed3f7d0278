package config

import (
	"strings"
	"testing"
)

const (
	hash  = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	other = "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
	// acme is an account, and call a kind, each in one line.
	acme = "accounts: {acme: {tokens: [{hash: \"" + hash + "\"}]}}\n"
	call = "kinds: {a: {http: {url: x}}}\n"
)

// Every error says where, what is wrong, and what is expected.
func TestErrorsNameLineAndFix(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown member", "listen: x\nlisen: y\n", `f.yaml:2:1: there is no member "lisen" here: there are listen, database, sharding,`},
		{"unknown member inside", "limits:\n  pending: 1\n  pendin: 2\n", `f.yaml:3:3: there is no member "pendin" here: there are new_per_second, burst, looks_per_second, pending`},
		{"repeated member", "listen: x\nlisten: y\n", `f.yaml:2:1: "listen" is there twice, the first time in line 1: keep one`},
		{"not YAML", "listen: [x\n", "f.yaml:1:9: this is not YAML: "},
		{"text for a number", "max_body: much\n", `f.yaml:1:11: max_body: "much" stands here: write a whole number`},
		{"text for a number inside", "listen: 127.0.0.1:0\nlimits:\n  pending: lots\n", `f.yaml:3:12: limits.pending: "lots" stands here: write a whole number`},
		{"in one line", "limits: {pending: lots}\n", `f.yaml:1:19: limits.pending: "lots" stands here: write a whole number`},
		{"in a list", "operators:\n  - name: kim\n    accounts: all\n", `f.yaml:3:15: operators[0].accounts: "all" stands here: write a list`},
		{"text for true", "worker: {off: maybe}\n", `f.yaml:1:15: worker.off: "maybe" stands here: write true or false`},
		{"list for members", "accounts: [acme]\n", `f.yaml:1:11: accounts: a list stands here: write members (name: value)`},
		{"list for the file", "- a\n", `f.yaml:1:1: a list stands here: write members (name: value): listen, database,`},
		{"text for the file", "hello\n", `f.yaml:1:1: "hello" stands here: write members (name: value): listen,`},
		{"empty", " \n", "f.yaml:1: the file is empty; docs/configuration.md has one"},
		{"a comment alone", "# nothing yet\n", "f.yaml:1: the file is empty; docs/configuration.md has one"},
		{"two documents", call + "---\nlisten: x\n", "f.yaml:2: a second document begins here"},
		{"two documents without a line between", "listen: x\n...\n" + call, "f.yaml:3: a second document begins here"},
		{"byte order mark", "\ufeffmax_body: -1\n", "f.yaml:1: max_body: can't be negative"},
		{"too large", "limits: {pending: 99999999999999999999}\n", "f.yaml:1:19: limits.pending: 99999999999999999999 is too large"},

		{"account's name", "accounts:\n  Acme: {tokens: [{hash: x}]}\n", "f.yaml:2: accounts.Acme: an account's name is"},
		{"no tokens", "accounts:\n  acme: {tokens: []}\n", "f.yaml:2: accounts.acme: has no tokens; make one with `semel token`"},
		{"hash", "accounts:\n  acme:\n    tokens:\n      - name: shop\n        hash: sha256:(put it here)\n",
			`f.yaml:5: accounts.acme.tokens[0].hash: is not "sha256:" and 64 hexadecimal digits: ` + "`semel token` makes"},
		{"no hash", "accounts:\n  acme:\n    tokens:\n      - name: shop\n", `f.yaml:4: accounts.acme.tokens[0].hash: is not`},
		{"operator's hash", acme + "operators:\n  - name: kim\n    accounts: [acme]\n    hash: 12\n", `f.yaml:5: operators[0].hash: is not "sha256:"`},
		{"one token twice", acme + "operators:\n  - name: kim\n    accounts: [acme]\n    hash: " + hash + "\n", "f.yaml:5: operators[0].hash: is the hash at f.yaml:1 too"},
		{"time", "accounts:\n  acme:\n    tokens:\n      - hash: " + hash + "\n        expires: tomorrow\n",
			`f.yaml:5: accounts.acme.tokens[0].expires: "tomorrow" is not a time: write it as in 2027-01-31T18:00:00Z`},
		{"day", "accounts:\n  acme:\n    tokens:\n      - hash: " + hash + "\n        expires: 2027-01-31\n", `f.yaml:5: accounts.acme.tokens[0].expires: "2027-01-31" is not a time`},
		{"operator of nothing", acme + "operators:\n  - {name: kim, hash: \"" + other + "\"}\n", "f.yaml:3: operators[0]: sees no account: write"},
		{"operator of nobody", acme + "operators:\n  - name: kim\n    hash: " + other + "\n    accounts:\n      - acme\n      - acne\n",
			`f.yaml:7: operators[0].accounts[1]: there is no account "acne": accounts has ["acme"]; "*" is all of them`},
		{"operator as nobody", acme + "operators:\n  - name: kim\n    hash: " + other + "\n    account: acne\n    accounts: ['*']\n",
			`f.yaml:5: operators[0].account: there is no account "acne"`},
		{"operator without accounts", "operators:\n  - {name: kim, hash: \"" + hash + "\", accounts: [acme]}\n", `there is no account "acme": accounts is empty`},
		{"operator without a name", acme + "operators:\n  - {hash: \"" + other + "\", accounts: [acme]}\n", "f.yaml:3: operators[0]: has no name"},

		{"address", "listen: 8787\n", `f.yaml:1: listen: "8787" is not an address: write host:port, such as`},
		{"port", "listen: 127.0.0.1:99999\n", `f.yaml:1: listen: port "99999" is not a number from 1 to 65535`},
		{"sharding", "sharding: kind\n", "f.yaml:1: sharding: write \"account\" or \"key\""},
		{"origin", "origins:\n  - https://a.example\n  - a.example\n", `f.yaml:3: origins[1]: "a.example" is not an origin: write`},
		{"body", "max_body: -1\n", "f.yaml:1: max_body: can't be negative"},
		{"limit", "limits:\n  burst: 1\n  pending: -1\n", "f.yaml:3: limits.pending: a limit can't be negative"},
		{"host", "worker:\n  hosts:\n    a.example: 0\n", "f.yaml:3: worker.hosts.a.example: write how many"},
		{"environment", "database: ${SEMEL_NOT_SET}\n", "f.yaml:1: database: the environment has no SEMEL_NOT_SET"},
		{"short key", "session_key: abc\n", "f.yaml:1: session_key: has fewer than 32"},

		{"no call", "kinds:\n  a:\n    description: b\n", "f.yaml:2: kinds.a: has no http"},
		{"no such preset", "kinds:\n  a:\n    http: {url: x}\n    contract: paypall\n", "f.yaml:4: kinds.a.contract:"},
		{"contract's field", "kinds:\n  a:\n    http: {url: x}\n    contract:\n      preset: idempotent\n      retention:\n        minimum: -3h\n", "f.yaml:"},
		{"contract's member", "kinds:\n  a:\n    http: {url: x}\n    contract:\n      preset: idempotent\n      carier: x\n", "f.yaml:6: kinds.a.contract.carier: there is no such member: contract has "},
		{"contract's member inside", "kinds:\n  a:\n    http: {url: x}\n    contract:\n      preset: idempotent\n      retention:\n        minmum: 1h\n", "f.yaml:7: kinds.a.contract.retention.minmum: there is no such member"},
		{"contract's value", "kinds:\n  a:\n    http: {url: x}\n    contract:\n      preset: idempotent\n      retention: long\n", "f.yaml:6: kinds.a.contract.retention: text stands here: write members"},
		{"duration", "kinds:\n  a:\n    retention: 30 days\n", "f.yaml:3: kinds.a.retention: \"30 days\" is not a duration"},
		{"timeout beyond the lease", "kinds:\n  a:\n    http: {url: x}\n    lease: 5s\n    timeout: 10h\n",
			"f.yaml:5: kinds.a.timeout: one call may take 10h0m0s, and that does not fit into nine tenths of the lease, which is 5s: raise lease, or lower timeout"},
		{"lease below the usual timeout", "kinds:\n  a:\n    http: {url: x}\n    lease: 5s\n", "f.yaml:4: kinds.a.lease: one call may take 20s,"},
		{"tries", "kinds:\n  a:\n    http: {url: x}\n    tries: -1\n", "f.yaml:4: kinds.a.tries: can't be negative"},
		{"concurrency", "kinds:\n  a:\n    http: {url: x}\n    concurrency: -1\n", "f.yaml:4: kinds.a.concurrency: can't be negative"},
	} {
		_, err := Parse("f.yaml", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
		if err != nil && (strings.Contains(err.Error(), "unmarshal") || strings.Contains(err.Error(), "Config.")) {
			t.Errorf("%s: it speaks of Go: %v", tt.name, err)
		}
	}
}

// An account that only its operator uses needs no token of its own.
func TestOperatorsOwnAccount(t *testing.T) {
	text := "accounts: {kim: {tokens: []}}\noperators: [{name: kim, account: kim, accounts: ['*'], hash: \"" + hash + "\"}]\n" + call
	if _, err := Parse("f.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
}

// What is accepted and hardly meant is told; what is usual is not.
func TestDoubts(t *testing.T) {
	for text, want := range map[string]string{
		"kinds:\n  a:\n    http: {url: x}\n    timeout: 10h\n":              "f.yaml:5: kinds.a.timeout: one call may take 10h0m0s, so the lease is 30h0m0s, and a worker that dies in an execution is noticed only then",
		"kinds:\n  a:\n    http: {url: x}\n    lease: 2h\n":                 "f.yaml:5: kinds.a.lease: a worker that dies in an execution is noticed only after 2h0m0s",
		"kinds:\n  a:\n    http: {url: x}\n    budget: 1s\n":                "f.yaml:5: kinds.a.budget: an operation is tried for 1s, which is less than the 20s that one call may take",
		"kinds:\n  a:\n    http: {url: x}\n    retention: 5s\n":             "f.yaml:5: kinds.a.retention: a repeat later than 5s is not answered from the record any more",
		call + "worker:\n  poll: 5m\n":                                      "f.yaml:4: worker.poll: work may wait for 5m0s before a worker looks",
		call + "worker:\n  drain: 1h\n":                                     "f.yaml:4: worker.drain: this process may take 1h0m0s to stop",
		call:                                                                "",
		"kinds:\n  a:\n    http: {url: x}\n    timeout: 30s\n    lease: 5m": "",
	} {
		c, err := Parse("f.yaml", []byte(acme+text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range c.Doubts() {
			got = append(got, d.At+": "+d.Msg)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s\n got %q\nwant %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		call: "f.yaml:1: accounts: there are no accounts and no operators",
		"accounts: {acme: {tokens: [{hash: \"" + hash + "\", expires: \"2001-01-01T00:00:00Z\"}]}}\n" + call: "f.yaml:1: accounts.acme.tokens[0].expires: this token has expired",
	} {
		c, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if d := c.Doubts(); len(d) != 1 || !strings.HasPrefix(d[0].At+": "+d[0].Msg, want) {
			t.Errorf("%s\n got %q\nwant %q", text, d, want)
		}
	}
}
