package fault_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/semel-dev/semel/fault"
)

// A service saves a note, and the answer is lost: the client sees an error,
// and the note is there.
func ExampleHandler() {
	var notes atomic.Int64
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "saved note %d", notes.Add(1))
	})
	broken := fault.NewHandler(service, fault.MustRule("lose-answer count=1 path=/notes method=POST"))
	defer broken.Close()
	server := httptest.NewServer(broken)
	defer server.Close()

	for range 2 {
		resp, err := http.Post(server.URL+"/notes", "text/plain", strings.NewReader("milk"))
		if err != nil {
			fmt.Println("no answer; notes:", notes.Load())
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%s; notes: %d\n", body, notes.Load())
	}
	// Output:
	// no answer; notes: 1
	// saved note 2; notes: 2
}

// A client loses the answer to its second order, and the log tells what the
// upstream had said.
func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	transport := fault.NewTransport(nil, fault.MustRule("lose-answer nth=2 path=/orders"))
	defer transport.Close()
	client := &http.Client{Transport: transport}

	for range 2 {
		resp, err := client.Post(server.URL+"/orders", "text/plain", strings.NewReader("tea"))
		if err != nil {
			fmt.Println("error")
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	for _, e := range transport.Log() {
		fmt.Println(e.Seq, e.Method, e.Path, e.Outcome, "sends:", e.Sends, "upstream:", e.Upstream)
	}
	// Output:
	// 201 Created
	// error
	// 1 POST /orders passed sends: 1 upstream: [201]
	// 2 POST /orders faulted sends: 1 upstream: [201]
}

// Between a program and its database: the commit is done, and not confirmed.
func ExampleTCPProxy() {
	var committed atomic.Bool
	database, _ := net.Listen("tcp", "127.0.0.1:0")
	defer database.Close()
	go func() {
		conn, err := database.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		statement, _ := bufio.NewReader(conn).ReadString(';')
		committed.Store(statement == "commit;")
		io.WriteString(conn, "COMMIT")
	}()

	proxy, err := fault.NewTCPProxy(database.Addr().String(), &fault.TCPOptions{
		Rules: []fault.Rule{fault.MustRule("lose-answer contains=COMMIT")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer proxy.Close()

	conn, _ := net.Dial("tcp", proxy.Addr())
	defer conn.Close()
	io.WriteString(conn, "commit;")
	answer, _ := io.ReadAll(conn)
	fmt.Printf("answer: %q, committed: %v\n", answer, committed.Load())
	// Output:
	// answer: "", committed: true
}

// A proxy holds an answer until the test has seen what it wanted to see.
func ExampleProxy() {
	var orders atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "order %d", orders.Add(1))
	}))
	defer server.Close()
	target, _ := url.Parse(server.URL)
	proxy, err := fault.NewProxy(target, &fault.ProxyOptions{Rules: []fault.Rule{fault.MustRule("hold count=1")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer proxy.Close()
	address, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}

	answers := make(chan string)
	go func() {
		resp, err := http.Post(address+"/orders", "text/plain", nil)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answers <- string(body)
	}()
	if err := proxy.WaitHeld(context.Background(), 1); err != nil {
		fmt.Println(err)
	}
	fmt.Println("orders while the answer is held:", orders.Load())
	proxy.Release()
	fmt.Println("answer:", <-answers)
	// Output:
	// orders while the answer is held: 1
	// answer: order 1
}

// An error says where, what is allowed there, and what was perhaps meant.
func ExampleParseRule() {
	rule, err := fault.ParseRule("delay for=2s path=/orders/*")
	fmt.Println(rule, err)
	_, err = fault.ParseRule("hold at=afetr")
	fmt.Println(err)
	// Output:
	// delay for=2s path=/orders/* <nil>
	// line 1, column 9: at cannot be "afetr"; did you mean after? (allowed: before, after)
}
