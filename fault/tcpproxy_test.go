package fault

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines is a server that answers each line with its own count, after it has
// remembered it. It greets nobody.
type lines struct {
	ln   net.Listener
	mu   sync.Mutex
	got  []string
	ends chan string // what was left over at the end of each connection
	wg   sync.WaitGroup
}

func newLines(t testing.TB) *lines {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &lines{ln: ln, ends: make(chan string, 100)}
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { ln.Close(); s.wg.Wait() })
	return s
}

func (s *lines) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			s.ends <- line
			return
		}
		s.mu.Lock()
		s.got = append(s.got, strings.TrimSpace(line))
		n := len(s.got)
		s.mu.Unlock()
		fmt.Fprintf(c, "done %d\n", n)
	}
}

func (s *lines) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.got, ",")
}

func tcpProxy(t testing.TB, target string, opts *TCPOptions) *TCPProxy {
	t.Helper()
	p, err := NewTCPProxy(target, opts)
	must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// say writes text and returns the answer's line.
func say(c net.Conn, text string) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	return bufio.NewReader(c).ReadString('\n')
}

func rulesOf(texts ...string) []Rule {
	var rules []Rule
	for _, text := range texts {
		rules = append(rules, MustRule(text))
	}
	return rules
}

func TestTCPProxyRules(t *testing.T) {
	for _, tt := range []struct {
		rule    string
		answers string // to begin, commit and end, with ! for a cut
		got     string // the lines that the server got
		left    string // and what was not a line
	}{
		{"lose-answer contains=COMMIT", "done 1,!", "begin,commit", ""},
		{"cut-before contains=COMMIT", "done 1,!", "begin", ""},
		{"cut-during contains=commit", "done 1,!", "begin", "com"},
		{"cut-during contains=commit bytes=2", "done 1,!", "begin", "co"},
		{"cut-after contains=commit bytes=4", "done 1,done!", "begin,commit", ""},
		{"delay contains=commit for=1ms", "done 1,done 2,done 3", "begin,commit,end", ""},
		{"delay contains=commit for=1ms at=after", "done 1,done 2,done 3", "begin,commit,end", ""},
		{"replay-old-connection contains=COMMIT", "done 1,!", "begin", ""},
		{"replay-old-connection contains=begin", "done 1,done 2,done 3", "begin,commit,end", ""},
		{"replay-old-connection", "done 1,!", "begin", ""},
		{"replay-old-connection at=after", "done 1,!", "begin,commit", ""},
		{"replay-old-connection nth=2", "done 1,done 2,!", "begin,commit", ""},
		{"cut-before", "!", "", ""},
		{"lose-answer", "!", "begin", ""},
		{"cut-during bytes=8", "done 1,!", "begin", "co"},
		{"cut-during bytes=0", "!", "", ""},
		{"cut-after bytes=10", "done 1,don!", "begin,commit", ""},
		{"cut-after bytes=0", "!", "begin", ""},
		{"delay for=1ms", "done 1,done 2,done 3", "begin,commit,end", ""},
		{"delay for=1ms at=after", "done 1,done 2,done 3", "begin,commit,end", ""},
		{"lose-answer nth=2", "done 1,done 2,done 3", "begin,commit,end", ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			noLeaks(t)
			s := newLines(t)
			p := tcpProxy(t, s.ln.Addr().String(), &TCPOptions{Rules: rulesOf(tt.rule)})
			c := dial(t, p.Addr())
			var answers []string
			for _, line := range []string{"begin\n", "commit\n", "end\n"} {
				answer, err := say(c, line)
				if err != nil {
					answers = append(answers, answer+"!")
					break
				}
				answers = append(answers, strings.TrimSpace(answer))
			}
			if got := strings.Join(answers, ","); got != tt.answers {
				t.Errorf("the client saw %q, want %q", got, tt.answers)
			}
			c.Close()
			must(t, p.WaitDone(ctxFor(t), 1))
			if tt.rule != "cut-before" { // that one never reaches the server
				if left := <-s.ends; left != tt.left {
					t.Errorf("the server got a torn %q, want %q", left, tt.left)
				}
			}
			if s.lines() != tt.got {
				t.Errorf("the server got %q, want %q", s.lines(), tt.got)
			}
			if want := strings.Contains(tt.answers, "!"); p.Progress().Faults == 0 && want {
				t.Errorf("not counted: %+v", p.Log())
			}
		})
	}
}

// chunks is a hook that tells of every chunk from the client.
func chunks(seen chan<- string) func(Direction, []byte) Action {
	return func(dir Direction, chunk []byte) Action {
		if dir == ClientToServer {
			seen <- string(chunk)
		}
		return Pass
	}
}

// Bytes are found wherever packets end, as often as they are there.
func TestTCPProxyCountsAcrossPackets(t *testing.T) {
	s := newLines(t)
	seen := make(chan string, 10)
	p := tcpProxy(t, s.ln.Addr().String(), &TCPOptions{Hook: chunks(seen), Rules: rulesOf("lose-answer contains=commit nth=4")})
	c := dial(t, p.Addr())
	r := bufio.NewReader(c)
	for i, text := range []string{"commit commit\n", "com", "mit\n", "Commi", "T\n"} {
		_, err := io.WriteString(c, text)
		must(t, err)
		if got := <-seen; got != text {
			t.Fatalf("the system has joined packets: %q", got)
		}
		if !strings.HasSuffix(text, "\n") {
			continue
		}
		if answer, err := r.ReadString('\n'); (err == nil) != (i < 4) {
			t.Fatalf("after %q: %q, %v", text, answer, err)
		}
	}
	if st := p.Rules()[0]; st.Seen != 4 || st.Applied != 1 {
		t.Errorf("counters: %+v", st)
	}
	if s.lines() != "commit commit,commit,CommiT" {
		t.Errorf("the server got %q", s.lines())
	}
}

func TestTCPProxyHold(t *testing.T) {
	for _, rule := range []string{"hold at=before", "hold", "hold contains=x", "hold contains=x at=before"} {
		t.Run(rule, func(t *testing.T) {
			noLeaks(t)
			s := newLines(t)
			p := tcpProxy(t, s.ln.Addr().String(), &TCPOptions{Rules: rulesOf(rule)})
			c := dial(t, p.Addr())
			_, err := io.WriteString(c, "x\n")
			must(t, err)
			must(t, p.WaitHeld(ctxFor(t), 1))
			if strings.Contains(rule, "before") != (s.lines() == "") {
				t.Errorf("while held, the server has %q", s.lines())
			}
			if p.Release() != 1 {
				t.Error("not held")
			}
			if answer, err := bufio.NewReader(c).ReadString('\n'); answer != "done 1\n" || err != nil {
				t.Errorf("%q, %v", answer, err)
			}
		})
	}
}

func TestTCPProxyHook(t *testing.T) {
	for _, tt := range []struct {
		dir    Direction
		action Action
		answer string
		got    string
		left   string
	}{
		{ClientToServer, Pass, "done 2\n", "one,two", ""},
		{ClientToServer, Cut, "", "one", ""},
		{ClientToServer, CutMiddle, "", "one", "tw"},
		{ClientToServer, PassThenCut, "", "one,two", ""},
		{ClientToServer, PassLoseAnswer, "", "one,two", ""},
		{ServerToClient, Cut, "", "one,two", ""},
		{ServerToClient, CutMiddle, "don", "one,two", ""},
		{ServerToClient, PassThenCut, "done 2\n", "one,two", ""},
		{ServerToClient, PassLoseAnswer, "", "one,two", ""},
	} {
		t.Run(fmt.Sprint(tt.dir, tt.action), func(t *testing.T) {
			noLeaks(t)
			s := newLines(t)
			p := tcpProxy(t, s.ln.Addr().String(), &TCPOptions{Hook: func(dir Direction, chunk []byte) Action {
				if dir == tt.dir && (string(chunk) == "two\n" || string(chunk) == "done 2\n") {
					return tt.action
				}
				return Pass
			}})
			c := dial(t, p.Addr())
			if answer, err := say(c, "one\n"); answer != "done 1\n" {
				t.Fatalf("%q, %v", answer, err)
			}
			if answer, _ := say(c, "two\n"); answer != tt.answer {
				t.Errorf("the client got %q, want %q", answer, tt.answer)
			}
			c.Close()
			if left := <-s.ends; left != tt.left {
				t.Errorf("torn %q, want %q", left, tt.left)
			}
			if s.lines() != tt.got {
				t.Errorf("the server got %q, want %q", s.lines(), tt.got)
			}
		})
	}
}

func TestTCPProxyHookDropAndWait(t *testing.T) {
	noLeaks(t)
	s := newLines(t)
	dropped := make(chan struct{})
	p := tcpProxy(t, s.ln.Addr().String(), &TCPOptions{Hook: func(dir Direction, chunk []byte) Action {
		switch string(chunk) {
		case "drop\n":
			close(dropped)
			return Drop
		case "wait\n":
			return Wait
		}
		return Pass
	}})
	c := dial(t, p.Addr())
	io.WriteString(c, "drop\n")
	<-dropped
	if got := p.Stats(); got.Accepted != 1 || got.Open != 1 || got.FromClient != 0 {
		t.Errorf("stats: %+v", got)
	}
	io.WriteString(c, "wait\n")
	must(t, p.WaitHeld(ctxFor(t), 1))
	if s.lines() != "" {
		t.Errorf("the server got %q", s.lines())
	}
	p.Release()
	if answer, err := bufio.NewReader(c).ReadString('\n'); answer != "done 1\n" {
		t.Errorf("%q, %v", answer, err)
	}
	if s.lines() != "wait" {
		t.Errorf("the server got %q", s.lines())
	}
}

func TestTCPProxySwitches(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprint("reset ", reset), func(t *testing.T) {
			noLeaks(t)
			s := newLines(t)
			p := tcpProxy(t, s.ln.Addr().String(), &TCPOptions{Reset: reset})
			c := dial(t, p.Addr())
			if answer, _ := say(c, "one\n"); answer != "done 1\n" {
				t.Fatalf("%q", answer)
			}

			p.Pause()
			io.WriteString(c, "two\n")
			c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); !isTimeout(err) {
				t.Errorf("while paused: %v", err)
			}
			c.SetReadDeadline(time.Now().Add(20 * time.Second))
			p.Resume()
			if answer, err := bufio.NewReader(c).ReadString('\n'); answer != "done 2\n" {
				t.Errorf("after the pause: %q, %v", answer, err)
			}

			begun := time.Now()
			p.SetDelay(ServerToClient, 30*time.Millisecond)
			if answer, _ := say(c, "three\n"); answer != "done 3\n" || time.Since(begun) < 30*time.Millisecond {
				t.Errorf("%q after %v", answer, time.Since(begun))
			}
			p.SetDelay(ServerToClient, 0)

			if n := p.CutAll(); n != 1 {
				t.Errorf("cut %d", n)
			}
			if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Errorf("after CutAll: %v", err)
			}
			must(t, p.WaitDone(ctxFor(t), 1))
			if e := p.Log()[0]; e.Sent != 14 || e.Received != 21 || e.Outcome != Faulted {
				t.Errorf("log: %+v", e)
			}

			addr := p.Addr()
			dial(t, addr)
			must(t, p.WaitStarted(ctxFor(t), 2))
			if n := p.Down(); n != 1 {
				t.Errorf("Down cut %d", n)
			}
			if _, err := net.Dial("tcp", addr); err == nil {
				t.Error("a connection to a proxy that is down")
			}
			must(t, p.Up())
			if answer, err := say(dial(t, addr), "four\n"); answer != "done 4\n" {
				t.Errorf("after Up: %q, %v", answer, err)
			}
		})
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// One direction may end while the other goes on.
func TestTCPProxyHalfClose(t *testing.T) {
	noLeaks(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		c.Write(bytes.ToUpper(all))
	}()
	p := tcpProxy(t, ln.Addr().String(), nil)
	c := dial(t, p.Addr())
	io.WriteString(c, "hello")
	must(t, c.(*net.TCPConn).CloseWrite())
	if got, err := io.ReadAll(c); string(got) != "HELLO" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTCPProxyTargetGone(t *testing.T) {
	noLeaks(t)
	s := newLines(t)
	target := s.ln.Addr().String()
	s.ln.Close()
	p := tcpProxy(t, target, nil)
	c := dial(t, p.Addr())
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v", err)
	}
	must(t, p.WaitDone(ctxFor(t), 1))
	if e := p.Log()[0]; e.Outcome != Failed || !strings.Contains(e.Err, "refused") {
		t.Errorf("log: %+v", e)
	}
}

func TestTCPProxyRefusesRules(t *testing.T) {
	for _, rule := range []string{"status", "duplicate", "reset-stream", "lose-answer path=/x", "cut-after", "cut-during"} {
		if _, err := NewTCPProxy("127.0.0.1:1", &TCPOptions{Rules: rulesOf(rule)}); err == nil {
			t.Errorf("%q was accepted over bytes", rule)
		}
	}
}
