package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

func isLost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost)
}

// settle finds out what became of a write whose answer was lost, by making it
// again until the database answers. The second try must be one that waits for
// whatever the first one may have left running, and that changes nothing where
// the first one did its work. The error is one with Recorded "unknown".
func (s *Store) settle(ctx context.Context, op string, lost error, again func(ctx context.Context, try int) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	for try := 1; ; try++ {
		err := again(ctx, try)
		if err == nil {
			return nil
		}
		if isLost(err) {
			lost = err
		}
		select {
		case <-ctx.Done():
			return unknown(op, lost)
		case <-time.After(time.Duration(min(try, 10)) * 20 * time.Millisecond):
		}
		if s.closed.Load() {
			return unknown(op, lost)
		}
	}
}

// nextMark is the owner mark of the try after the first one. A statement of the
// first try that is still under way does not find it.
func nextMark(owner string, try int) string { return owner + "~" + strconv.Itoa(try) }

// isMark reports whether mark is owner or one of its next marks.
func isMark(mark, owner string) bool {
	rest, ok := strings.CutPrefix(mark, owner)
	return ok && (rest == "" || rest[0] == '~')
}
