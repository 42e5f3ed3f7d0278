//go:build !unix || solaris || aix

package generator

import (
	"os"
	"path/filepath"
)

// lockDir only makes the lock file: here nothing keeps a second process out.
func lockDir(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
}

// syncDir does nothing: directories can't be synced here, and need not be.
func syncDir(string) error { return nil }
