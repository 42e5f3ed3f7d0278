package fault

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// listen serves lines through a Listener.
func listen(t testing.TB, rules ...Rule) (*Listener, *lines) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := NewListener(ln, rules...)
	s := &lines{ln: l, ends: make(chan string, 100)}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); s.wg.Wait() })
	return l, s
}

func TestListener(t *testing.T) {
	for _, tt := range []struct{ rule, answers, got, left string }{
		{"lose-answer", "!", "begin", ""},
		{"lose-answer contains=COMMIT", "done 1,!", "begin,commit", ""},
		{"cut-before", "!", "", ""},
		{"cut-before contains=commit", "done 1,!", "begin", ""},
		{"cut-during bytes=8", "done 1,!", "begin", "co"},
		{"cut-during contains=commit", "done 1,!", "begin", "com"},
		{"cut-after bytes=10", "done 1,don!", "begin,commit", ""},
		{"delay for=1ms", "done 1,done 2", "begin,commit", ""},
		{"delay for=1ms at=after", "done 1,done 2", "begin,commit", ""},
		{"replay-old-connection", "done 1,!", "begin", ""},
		{"replay-old-connection at=after", "done 1,!", "begin,commit", ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			noLeaks(t)
			l, s := listen(t, MustRule(tt.rule))
			c := dial(t, s.ln.Addr().String())
			var answers []string
			for _, line := range []string{"begin\n", "commit\n"} {
				answer, err := say(c, line)
				if err != nil {
					answers = append(answers, answer+"!")
					break
				}
				answers = append(answers, strings.TrimSpace(answer))
			}
			c.Close()
			must(t, l.WaitDone(ctxFor(t), 1))
			if got := strings.Join(answers, ","); got != tt.answers {
				t.Errorf("the client saw %q, want %q", got, tt.answers)
			}
			if tt.rule != "cut-before" {
				if left := <-s.ends; left != tt.left {
					t.Errorf("torn %q, want %q", left, tt.left)
				}
			}
			if s.lines() != tt.got {
				t.Errorf("the server got %q, want %q", s.lines(), tt.got)
			}
			if e := l.Log()[0]; e.Outcome != Faulted || e.Faults != 1 {
				t.Errorf("log: %+v", e)
			}
		})
	}
}

func TestListenerHoldAndClose(t *testing.T) {
	noLeaks(t)
	l, s := listen(t, MustRule("hold"))
	c := dial(t, s.ln.Addr().String())
	io.WriteString(c, "one\n")
	must(t, l.WaitHeld(ctxFor(t), 1))
	l.Release()
	r := bufio.NewReader(c)
	if answer, err := r.ReadString('\n'); answer != "done 1\n" {
		t.Errorf("%q, %v", answer, err)
	}
	other := dial(t, s.ln.Addr().String())
	io.WriteString(other, "two\n")
	must(t, l.WaitHeld(ctxFor(t), 1))
	must(t, l.Close()) // ends what is held, so that the server can stop
	if answer, err := bufio.NewReader(other).ReadString('\n'); err == nil {
		t.Errorf("answered after Close: %q", answer)
	}
}

// Below net/http, a lost answer is a completed handler and a broken connection.
func TestListenerBelowHTTP(t *testing.T) {
	s := newShop()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := NewListener(ln, MustRule(`lose-answer contains="POST /notes" count=1`))
	srv := &http.Server{Handler: s}
	defer srv.Close()
	go srv.Serve(l)
	client := transport(t, "http1", nil)
	url := "http://" + l.Addr().String()
	if got := send(client, "POST", url+"/other", title); got.status != 201 {
		t.Errorf("not meant: %+v", got)
	}
	if got := send(client, "POST", url+"/notes", title); got.err == nil {
		t.Errorf("meant: %+v", got)
	}
	must(t, l.WaitFaults(ctxFor(t), 1))
	if s.completed() != 2 {
		t.Errorf("completed %d, want 2", s.completed())
	}
	if got := send(client, "POST", url+"/notes", title); got.status != 201 {
		t.Errorf("spent: %+v", got)
	}
}
