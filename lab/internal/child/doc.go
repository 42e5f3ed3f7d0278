// Package child starts this same program as another process, watches it, and ends
// it as a crash would.
//
// A parent gives its child one value, as JSON in the environment, and any number of
// open files; the child reads it with [Setup], prints "ready" with [Ready], and
// lives no longer than its parent: its standard input closes then.
package child
