package child

import (
	"errors"
	"net"
	"os"
)

// A Door is a listener that is handed down to processes; it outlives them.
type Door struct {
	listener net.Listener
	// File is to be given to [Start], and URL is where clients go.
	File *os.File
	URL  string
}

// NewDoor opens one on a free port.
func NewDoor() (*Door, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &Door{listener, file, "http://" + listener.Addr().String()}, nil
}

// Close closes this process's ends.
func (d *Door) Close() error { return errors.Join(d.File.Close(), d.listener.Close()) }
