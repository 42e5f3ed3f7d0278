//go:build linux || darwin

package node

import (
	"errors"
	"syscall"
)

const readAndWrite = 4 | 2 // R_OK and W_OK of access(2)

// mayUse reports why this user may not read and write the file, if it is there. It
// only asks: to open and close the file would drop the locks that SQLite holds on
// it in this process. SQLite itself would open a file that can't be written, and
// fail at the first operation.
func mayUse(file string) error {
	if err := syscall.Access(file, readAndWrite); err != nil && !errors.Is(err, syscall.ENOENT) {
		return err
	}
	return nil
}
