package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"slices"

	"github.com/semel-dev/semel/fault"
)

func runProxy(ctx context.Context, args []string) error {
	set := flags("proxy")
	var o fault.ProcessOptions
	to := set.String("to", "", "the `URL` behind it: http://…, https://… or tcp://host:port")
	set.Func("fault", "a `RULE`, such as 'lose-answer count=1 path=/orders'; may be given several times",
		func(rule string) error {
			_, err := fault.ParseRule(rule)
			o.Rules = append(o.Rules, rule)
			return err
		})
	set.StringVar(&o.Listen, "listen", "127.0.0.1:0", "`ADDR` for clients")
	set.StringVar(&o.Control, "control", "127.0.0.1:0", "`ADDR` of the HTTP control: PUT /rules, GET /log, POST /release")
	set.StringVar(&o.CertFile, "cert", "", "a certificate `FILE`, for clients that speak TLS")
	set.StringVar(&o.KeyFile, "key", "", "its key `FILE`")
	set.StringVar(&o.CAFile, "ca", "", "a `FILE` of authorities for the certificate behind it")
	set.BoolVar(&o.Insecure, "insecure", false, "do not check the certificate behind it")
	set.BoolVar(&o.H2C, "h2c", false, "speak HTTP/2 without TLS to what is behind it")
	set.BoolVar(&o.PreserveHost, "preserve-host", false, "send the client's Host on")
	if err := parse(set, args); err != nil {
		return err
	}
	if *to == "" {
		return wrongCall("proxy", "--to URL is missing: say what is behind it")
	}
	if u, err := url.Parse(*to); err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "tcp"}, u.Scheme) {
		return wrongCall("proxy", "--to: %q is none of http://host, https://host, tcp://host:port", *to)
	}
	out := &announcement{}
	o.Out = out
	err := fault.RunProxy(ctx, *to, &o)
	var wrong *fault.ParseError
	if errors.As(err, &wrong) {
		return wrongCall("proxy", "%s", err)
	}
	if err != nil && !out.made {
		return notStarted(err)
	}
	return err
}

// An announcement goes to standard output, and is made when that has all of it.
type announcement struct{ made bool }

func (a *announcement) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	a.made = err == nil
	return n, err
}
