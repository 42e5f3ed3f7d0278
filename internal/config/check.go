package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
)

const nameGrammar = "1 to 64 of a-z 0-9 . _ - starting with a letter or digit"

// checker gathers what is wrong, with the lines.
type checker struct {
	*Config
	errs []error
}

func (c *checker) fail(path []string, format string, args ...any) {
	c.errs = append(c.errs, c.At(fmt.Errorf(format, args...), path...))
}

func at(path ...string) []string { return path }

// check looks at what no other package will.
func (c *Config) check() error {
	k := &checker{Config: c}
	k.server()
	k.credentials()
	if len(c.Kinds) == 0 {
		k.fail(at("kinds"), "there are no kinds: name the operations that may be asked for")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Kinds)) {
		k.kind(name, c.Kinds[name])
	}
	return errors.Join(k.errs...)
}

func (k *checker) duration(d Duration, path ...string) { k.errs = append(k.errs, k.At(d.err, path...)) }

// server checks what is not of one account or one kind.
func (k *checker) server() {
	c := k.Config
	k.duration(c.Worker.Poll, "worker", "poll")
	k.duration(c.Worker.Drain, "worker", "drain")
	if _, port, err := net.SplitHostPort(c.Listen); err != nil {
		k.fail(at("listen"), "%q is not an address: write host:port, such as 127.0.0.1:8787", c.Listen)
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		k.fail(at("listen"), "port %q is not a number from 1 to 65535, or 0 for a free one", port)
	}
	if c.Sharding != "" && c.Sharding != string(semel.ShardByAccount) && c.Sharding != string(semel.ShardByKey) {
		k.fail(at("sharding"), `write "account" or "key"`)
	}
	if c.SessionKey != "" && len(c.SessionKey) < 32 {
		k.fail(at("session_key"), "has fewer than 32 characters; make one with `openssl rand -hex 32`")
	}
	if c.MaxBody < 0 {
		k.fail(at("max_body"), "can't be negative: write a number of bytes, or leave it out for 1048576")
	}
	for member, negative := range map[string]bool{"new_per_second": c.Limits.NewPerSecond < 0, "burst": c.Limits.Burst < 0,
		"looks_per_second": c.Limits.LooksPerSecond < 0, "pending": c.Limits.Pending < 0} {
		if negative {
			k.fail(at("limits", member), "a limit can't be negative; leave it out for no limit")
		}
	}
	for i, origin := range c.Origins {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			k.fail(at("origins", strconv.Itoa(i)), "%q is not an origin: write scheme and host alone, as in https://app.example", origin)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(c.Worker.Hosts)) {
		if c.Worker.Hosts[host] < 1 {
			k.fail(at("worker", "hosts", host), "write how many calls at a time, at least 1")
		}
	}
}

var tokenHash = regexp.MustCompile(`^sha256:[0-9a-fA-F]{64}$`)

// credentials checks accounts and operators, and that each is really somebody.
func (k *checker) credentials() {
	c := k.Config
	seen := map[string]string{} // hash → where
	token := func(hash string, expires Time, path ...string) {
		place := append(path[:len(path):len(path)], "hash")
		if !tokenHash.MatchString(hash) {
			k.fail(place, `is not "sha256:" and 64 hexadecimal digits: `+"`semel token` makes a token and prints its hash")
		} else if first, twice := seen[hash]; twice {
			k.fail(place, "is the hash at %s too: a token belongs to one; make another with `semel token`", first)
		} else if seen[hash] = dotted(place); c.doc != nil {
			seen[hash] = c.doc.line(place)
		}
		k.errs = append(k.errs, c.At(expires.err, append(path[:len(path):len(path)], "expires")...))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Accounts)) {
		if !semel.ValidName(name) {
			k.fail(at("accounts", name), "an account's name is "+nameGrammar)
		}
		own := func(o Operator) bool { return o.Account == name }
		if len(c.Accounts[name].Tokens) == 0 && !slices.ContainsFunc(c.Operators, own) {
			k.fail(at("accounts", name), "has no tokens; make one with `semel token`")
		}
		for i, t := range c.Accounts[name].Tokens {
			token(t.Hash, t.Expires, "accounts", name, "tokens", strconv.Itoa(i))
		}
	}
	for i, o := range c.Operators {
		path := at("operators", strconv.Itoa(i))
		token(o.Hash, o.Expires, path...)
		k.operator(o, path)
	}
}

func (k *checker) operator(o Operator, path []string) {
	if o.Name == "" {
		k.fail(path, "has no name: it stands under verdicts")
	}
	there := func(account string) bool { _, ok := k.Accounts[account]; return ok }
	if o.Account != "" && !there(o.Account) {
		k.fail(append(path[:len(path):len(path)], "account"), "there is no account %q: %s", o.Account, k.accountNames())
	}
	if len(o.Accounts) == 0 {
		k.fail(path, `sees no account: write accounts: [acme], or accounts: ["*"] for all of them`)
	}
	for i, account := range o.Accounts {
		if account != "*" && !there(account) {
			k.fail(append(path[:len(path):len(path)], "accounts", strconv.Itoa(i)), `there is no account %q: %s; "*" is all of them`, account, k.accountNames())
		}
	}
}

// accountNames says which accounts there are.
func (k *checker) accountNames() string {
	names := slices.Sorted(maps.Keys(k.Accounts))
	switch {
	case len(names) == 0:
		return "accounts is empty"
	case len(names) > 8:
		return fmt.Sprintf("name one of the %d under accounts", len(names))
	}
	return fmt.Sprintf("accounts has %q", names)
}

func (k *checker) kind(name string, kind Kind) {
	here := func(member string) []string { return at("kinds", name, member) }
	if !semel.ValidName(name) {
		k.fail(at("kinds", name), "a kind's name is "+nameGrammar)
	}
	k.duration(kind.Retention, here("retention")...)
	k.duration(kind.Timeout, here("timeout")...)
	k.duration(kind.Lease, here("lease")...)
	k.duration(kind.Budget, here("budget")...)
	if timeout, lease := kind.times(); timeout+lease/10 >= lease {
		member := "timeout"
		if kind.Timeout.D() == 0 {
			member = "lease"
		}
		k.fail(here(member), "one call may take %s, and that does not fit into nine tenths of the lease, which is %s: raise lease, or lower timeout", timeout, lease)
	}
	if kind.Tries < 0 {
		k.fail(here("tries"), "can't be negative: write how many executions at most, or leave it out for 20")
	}
	if kind.Concurrency < 0 {
		k.fail(here("concurrency"), "can't be negative: write how many at a time, or leave it out for 8")
	}
	if kind.HTTP == nil {
		k.fail(at("kinds", name), "has no http: say which external call it makes")
	}
	if _, err := kind.ParseContract(); err != nil {
		k.errs = append(k.errs, k.fields(err, here("contract")...))
	}
}

// times are a call's timeout and the lease, by the defaults of package worker where
// the file says nothing.
func (k Kind) times() (timeout, lease time.Duration) {
	if timeout = k.Timeout.D(); timeout <= 0 {
		timeout = 20 * time.Second
	}
	if lease = k.Lease.D(); lease <= 0 {
		lease = max(time.Minute, 3*timeout)
	}
	return timeout, lease
}
