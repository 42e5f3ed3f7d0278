package generator_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/semel-dev/semel/examples/menuexport/generator"
)

// The same request twice, under the idempotent contract.
func Example() {
	dir, err := os.MkdirTemp("", "menus")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	service, err := generator.New(dir, &generator.Options{Contract: generator.Idempotent})
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	server := httptest.NewServer(service)
	defer server.Close()

	for range 2 {
		menu := `{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","米饭"]}]}`
		req, err := http.NewRequest("POST", server.URL+"/images", strings.NewReader(menu))
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", `"monday"`)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Printf("%d replayed=%q\n", resp.StatusCode, resp.Header.Get("Idempotency-Replayed"))
	}
	resp, err := http.Get(server.URL + "/stats")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	stats, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s", stats)
	// Output:
	// 201 replayed=""
	// 201 replayed="true"
	// {"executions":1,"images":1}
}

// A picture without the service.
func ExampleRender() {
	menu, err := generator.ParseMenu([]byte(`{"title":"Week 48","days":[{"day":"Monday","dishes":["Tomato soup"]}],"width":480}`))
	if err != nil {
		log.Fatal(err)
	}
	picture, err := generator.Render(menu)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(picture.Width, string(picture.PNG[1:4]))
	// Output: 480 PNG
}
