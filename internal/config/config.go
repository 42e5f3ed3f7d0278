// Package config reads the file that `semel serve` runs by.
//
// One YAML file holds accounts, tokens, kinds, contracts, database and listen
// address. [Load] reads it strictly: an unknown member, a repeated one or a
// value that cannot be is an error which names the line and the fix. What can be
// and is hardly meant is told by [Config.Doubts]. The file's own JSON Schema is
// docs/config.schema.json, generated from the types here.
package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/semel-dev/semel/contract"
)

// A Config is the whole file.
type Config struct {
	// Listen is the address that the server listens on.
	Listen string `yaml:"listen" json:"listen,omitempty" jsonschema:"Address to listen on. Defaults to 127.0.0.1:8787."`
	// Database is a file for SQLite, or a postgres:// URL.
	Database string `yaml:"database" json:"database,omitempty" jsonschema:"A file for SQLite, or postgres://… for PostgreSQL; ${NAME} is read from the environment. Defaults to semel.db."`
	// Sharding is "account" or "key"; a database keeps the one it was created with.
	Sharding string `yaml:"sharding" json:"sharding,omitempty" jsonschema:"What an operation's bucket is hashed from: account, or key where one account is the whole load. Defaults to account."`

	Accounts  map[string]Account `yaml:"accounts" json:"accounts,omitempty" jsonschema:"Who may ask for operations, by account name."`
	Operators []Operator         `yaml:"operators" json:"operators,omitempty" jsonschema:"Who may look at and resolve operations of accounts."`

	// SecureCookies, Origins, SessionKey and MaxBody are those of httpapi.Options.
	SecureCookies bool     `yaml:"secure_cookies" json:"secure_cookies,omitempty" jsonschema:"Pages reach this server over https through a proxy."`
	Origins       []string `yaml:"origins" json:"origins,omitempty" jsonschema:"Origins whose pages may call with a bearer token (CORS). Defaults to none."`
	SessionKey    string   `yaml:"session_key" json:"session_key,omitempty" jsonschema:"Signs sign-in cookies: at least 32 random characters, the same on every node; ${NAME} is read from the environment. Defaults to a random one."`
	MaxBody       int64    `yaml:"max_body" json:"max_body,omitempty" jsonschema:"Limit of a request's body in bytes. Defaults to 1048576."`

	Limits Limits          `yaml:"limits" json:"limits,omitempty" jsonschema:"Caps for each account."`
	Worker Worker          `yaml:"worker" json:"worker,omitempty" jsonschema:"The worker of this process."`
	Kinds  map[string]Kind `yaml:"kinds" json:"kinds,omitempty" jsonschema:"What may be asked for, by kind."`

	doc *document
}

// An Account may ask for operations.
type Account struct {
	Tokens []Token `yaml:"tokens" json:"tokens" jsonschema:"Its tokens; several while one replaces another. None is enough where an operator has it as its account."`
}

// A Token is known by its hash; `semel token` makes one.
type Token struct {
	Name    string `yaml:"name" json:"name,omitempty" jsonschema:"Who holds it."`
	Hash    string `yaml:"hash" json:"hash" jsonschema:"What semel token prints: sha256:…"`
	Expires Time   `yaml:"expires" json:"expires,omitzero" jsonschema:"RFC 3339 time of its end. Defaults to never."`
}

// An Operator may look at and resolve operations of its accounts.
type Operator struct {
	Name     string   `yaml:"name" json:"name" jsonschema:"Who this is, as verdicts will say."`
	Hash     string   `yaml:"hash" json:"hash" jsonschema:"What semel token prints: sha256:…"`
	Account  string   `yaml:"account" json:"account,omitempty" jsonschema:"The one of the accounts that it asks for operations as. Defaults to none."`
	Accounts []string `yaml:"accounts" json:"accounts" jsonschema:"The accounts it sees; * alone is all of them."`
	Expires  Time     `yaml:"expires" json:"expires,omitzero" jsonschema:"RFC 3339 time of the token's end. Defaults to never."`
}

// Limits are those of semel.Limits.
type Limits struct {
	NewPerSecond   float64 `yaml:"new_per_second" json:"new_per_second,omitempty" jsonschema:"New operations each second. Defaults to no limit."`
	Burst          int     `yaml:"burst" json:"burst,omitempty" jsonschema:"New operations at once. Defaults to ten seconds' worth."`
	LooksPerSecond float64 `yaml:"looks_per_second" json:"looks_per_second,omitempty" jsonschema:"Repeats and look-ups each second. Defaults to 20 times new_per_second."`
	Pending        int     `yaml:"pending" json:"pending,omitempty" jsonschema:"Operations that may wait at a time. Defaults to no limit."`
}

// Worker says whether and how this process executes.
type Worker struct {
	Off   bool           `yaml:"off" json:"off,omitempty" jsonschema:"Do not execute in this process; other nodes do."`
	Hosts map[string]int `yaml:"hosts" json:"hosts,omitempty" jsonschema:"Calls at a time to one external host (host or host:port). Defaults to the sum of its kinds."`
	Poll  Duration       `yaml:"poll" json:"poll,omitempty" jsonschema:"Longest time between two looks for work. Defaults to 1s."`
	Drain Duration       `yaml:"drain" json:"drain,omitempty" jsonschema:"How long running executions may take to end on shutdown. Defaults to 20s."`
}

// A Kind is something that may be asked for. Contract and HTTP are kept as JSON
// for the packages that own them.
type Kind struct {
	Description string   `yaml:"description" json:"description,omitempty" jsonschema:"For people: GET /v1/kinds shows it."`
	Schema      JSON     `yaml:"schema" json:"schema,omitempty" jsonschema:"JSON Schema of the parameters. Defaults to any JSON."`
	SchemaFile  string   `yaml:"schema_file" json:"schema_file,omitempty" jsonschema:"A file that holds it, beside this one."`
	Include     []string `yaml:"include" json:"include,omitempty" jsonschema:"JSON Pointers of what is compared. Defaults to everything."`
	Exclude     []string `yaml:"exclude" json:"exclude,omitempty" jsonschema:"JSON Pointers of what is not compared."`
	Retention   Duration `yaml:"retention" json:"retention,omitempty" jsonschema:"How long a settled operation is remembered. Defaults to 30d."`
	Contract    JSON     `yaml:"contract" json:"contract,omitempty" jsonschema:"What the external service promises about repeats: a preset's name, or a contract. Defaults to opaque."`
	HTTP        JSON     `yaml:"http" json:"http,omitempty" jsonschema:"The external call."`

	Timeout     Duration `yaml:"timeout" json:"timeout,omitempty" jsonschema:"Longest time of one call; it and a tenth of the lease fit into the lease. Defaults to 20s."`
	Lease       Duration `yaml:"lease" json:"lease,omitempty" jsonschema:"How long an execution may be silent before another worker takes over. Defaults to 60s, or three times the timeout."`
	Budget      Duration `yaml:"budget" json:"budget,omitempty" jsonschema:"How long an operation is tried. Defaults to 12h, or half of the contract's retention if that is less."`
	Tries       int      `yaml:"tries" json:"tries,omitempty" jsonschema:"Executions at most. Defaults to 20."`
	Concurrency int      `yaml:"concurrency" json:"concurrency,omitempty" jsonschema:"Executions of this kind at a time. Defaults to 8."`
}

// A Duration is written as in "90s", "24h" or "30d". One that can't be read is
// kept as text until its line can be named.
type Duration struct {
	d   time.Duration
	err error
}

// UnmarshalText reads a Duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := contract.ParseDuration(string(text))
	if err == nil && v <= 0 {
		err = fmt.Errorf("%q is not more than nothing", text)
	}
	d.d, d.err = v.D(), err
	return nil
}

// DurationOf returns d, for configurations made by a program.
func DurationOf(d time.Duration) Duration { return Duration{d: d} }

// D returns d as a time.Duration.
func (d Duration) D() time.Duration { return d.d }

// A Time is written as RFC 3339 has it. One that can't be read is kept as text
// until its line can be named.
type Time struct {
	t   time.Time
	err error
}

// UnmarshalText reads a Time.
func (t *Time) UnmarshalText(text []byte) error {
	if t.t, t.err = time.Parse(time.RFC3339, string(text)); t.err != nil {
		t.err = fmt.Errorf("%q is not a time: write it as in 2027-01-31T18:00:00Z", text)
	}
	return nil
}

// T returns t as a time.Time.
func (t Time) T() time.Time { return t.t }

// JSON is a part of the file that another package reads, as JSON; empty if absent.
type JSON = json.RawMessage

// At turns an error about the member at that path, found by whoever uses the
// configuration, into one that names the file and the line.
func (c *Config) At(err error, path ...string) error {
	if err == nil || c.doc == nil {
		return err
	}
	path, err = c.doc.plain(path, err)
	return c.doc.at(err, path...)
}
