package effect

import "testing"

func TestTemplate(t *testing.T) {
	params := []byte(`{"id":"a b/c?d","n":12,"list":["x"],"dots":"..","empty":"","o":{}}`)
	for _, c := range []struct{ text, want string }{
		{"https://api.example/v1/orders", "https://api.example/v1/orders"},
		{"https://api.example/orders/{key}", "https://api.example/orders/K%2F1"},
		{"https://api.example/o?x=1&key={key}", "https://api.example/o?x=1&key=K%2F1"},
		{"https://api.example/{params:/id}/x?n={params:/n}&l={params:/list/0}", "https://api.example/a%20b%2Fc%3Fd/x?n=12&l=x"},
		{"http://127.0.0.1:8080/{operation_id}", "http://127.0.0.1:8080/K%2F1"},
		{"http://h/?e={params:/empty}", "http://h/?e="},
	} {
		tmpl, err := parseTemplate(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		u, err := tmpl.expand("K/1", params)
		if err != nil || u.String() != c.want {
			t.Errorf("%s: %v, %v; want %s", c.text, u, err, c.want)
		}
	}
	for _, text := range []string{"", "orders", "/orders", "ftp://h/x", "https://{key}/x", "https://h{key}/x", "https://u:p@h/x", "https://h/#x",
		"https://h/{key", "https://h/}", "https://h/{}", "https://h/{params:id}"} {
		if _, err := parseTemplate(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	for _, text := range []string{"http://h/{params:/dots}/x", "http://h/{params:/empty}", "http://h/{params:/missing}", "http://h/{params:/o}", "http://h/?q={params:/list}"} {
		tmpl, err := parseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		if u, err := tmpl.expand("K", params); err == nil {
			t.Errorf("%s: %v; want an error", text, u)
		}
	}
}
