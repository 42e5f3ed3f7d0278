package client

import (
	"os"
	"testing"
)

// The test binary is also the programs that the tests start and kill.
func TestMain(m *testing.M) {
	if role := os.Getenv("SEMEL_CLIENT_ROLE"); role != "" {
		roles[role]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// roles are the programs.
var roles = map[string]func(){
	"hold":   holdRole,
	"intent": intentRole,
	"resume": resumeRole,
}
