package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"github.com/semel-dev/semel/contract"
)

// Load reads the file at path. Relative names in it are relative to its folder.
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the configuration can't be read: %w", err)
	}
	return Parse(path, text)
}

// Parse reads text as the file at path.
func Parse(path string, text []byte) (*Config, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin with it
	doc := &document{path: path}
	var err error
	if doc.file, err = parser.ParseBytes(text, 0); err != nil {
		return nil, doc.syntax(err)
	}
	switch {
	case doc.body() == nil:
		return nil, fmt.Errorf("%s:1: the file is empty; docs/configuration.md has one to begin with", path)
	case len(doc.file.Docs) > 1:
		return nil, fmt.Errorf("%s: a second document begins here, and it would not be read: write one", doc.second())
	}
	c := &Config{Listen: "127.0.0.1:8787", Database: "semel.db", doc: doc}
	err = yaml.UnmarshalWithOptions(text, c, yaml.Strict(), yaml.CustomUnmarshaler(unmarshalJSON))
	if err != nil {
		return nil, doc.syntax(err)
	}
	if err := c.complete(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return c, c.check()
}

func unmarshalJSON(to *JSON, text []byte) error {
	converted, err := yaml.YAMLToJSON(text)
	*to = converted
	return err
}

// complete reads the environment and the files that are named.
func (c *Config) complete(folder string) error {
	var errs []error
	expand := func(s *string, member string) {
		v, err := expandEnv(*s)
		errs = append(errs, c.At(err, member))
		*s = v
	}
	expand(&c.Database, "database")
	expand(&c.SessionKey, "session_key")
	if !strings.Contains(c.Database, "://") && !filepath.IsAbs(c.Database) {
		c.Database = filepath.Join(folder, c.Database)
	}
	for name, k := range c.Kinds {
		if k.SchemaFile == "" {
			continue
		}
		if k.Schema != nil {
			errs = append(errs, c.At(errors.New("schema and schema_file are both there; keep one"), "kinds", name, "schema_file"))
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, k.SchemaFile))
		if err == nil {
			k.Schema, err = yaml.YAMLToJSON(text)
		}
		errs = append(errs, c.At(err, "kinds", name, "schema_file"))
		c.Kinds[name] = k
	}
	return errors.Join(errs...)
}

var envRef = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

func expandEnv(s string) (string, error) {
	var err error
	return envRef.ReplaceAllStringFunc(s, func(ref string) string {
		value, ok := os.LookupEnv(ref[2 : len(ref)-1])
		if !ok {
			err = fmt.Errorf("the environment has no %s", ref[2:len(ref)-1])
		}
		return value
	}), err
}

// ParseContract returns the kind's contract; opaque if the file says nothing.
func (k Kind) ParseContract() (contract.Contract, error) {
	if k.Contract == nil {
		return contract.Preset("opaque")
	}
	return contract.Parse(k.Contract)
}

// fields names the line of each field that a contract's error is about.
func (c *Config) fields(err error, path ...string) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		var field *contract.FieldError
		if errors.As(err, &field) {
			path = append(path, strings.FieldsFunc(field.Field, func(r rune) bool { return strings.ContainsRune(".[]", r) })...)
		}
		return c.At(err, path...)
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, c.fields(one, path...))
	}
	return errors.Join(all...)
}
