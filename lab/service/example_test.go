package service_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/semel-dev/semel/lab/service"
)

// An order whose answer is lost, and a caller who tries again.
func Example() {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	orders, err := service.New(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	server := httptest.NewServer(orders)
	defer server.Close()

	put, _ := http.NewRequest("PUT", server.URL+"/faults/rules", strings.NewReader("lose-answer count=1"))
	if _, err := http.DefaultClient.Do(put); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		resp, err := http.Post(server.URL+"/orders/opaque", "application/json", strings.NewReader(`{"order":"tea"}`))
		if err != nil {
			fmt.Println("no answer")
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	resp, err := http.Get(server.URL + "/books")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	books, _ := io.ReadAll(resp.Body)
	fmt.Println(strings.Contains(string(books), `"done":2`))
	// Output:
	// no answer
	// 201 Created
	// true
}
