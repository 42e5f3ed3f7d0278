package generator

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// imageAnswer is what the service says of one picture.
type imageAnswer struct {
	ImageID   string    `json:"image_id"`
	ImageURL  string    `json:"image_url"` // a path on this service
	Width     int       `json:"width"`
	Height    int       `json:"height"`
	SHA256    string    `json:"sha256"`
	Key       string    `json:"key,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

func (r *record) answer() imageAnswer {
	return imageAnswer{r.ImageID, "/images/" + r.ImageID + ".png", r.Width, r.Height, r.SHA256, r.Key, r.CreatedAt}
}

// failure is an error answer.
type failure struct {
	Status     int    `json:"-"`
	RetryAfter string `json:"-"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Field      string `json:"field,omitempty"`
}

func (f *failure) write(w http.ResponseWriter) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	writeJSON(w, f.Status, f)
}

// badInput is the answer to a body that is wrong.
func badInput(code string, err error) *failure {
	f := &failure{Status: http.StatusBadRequest, Code: code, Message: err.Error()}
	if in, ok := errors.AsType[*InputError](err); ok {
		f.Field = in.Field
	}
	return f
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own structs come here
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}

// methods serves one path, by method. GET serves HEAD as well.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if h := m[method]; h != nil {
		h(w, r)
		return
	}
	var allow []string
	for name := range m {
		allow = append(allow, name)
	}
	slices.Sort(allow)
	w.Header().Set("Allow", strings.Join(allow, ", "))
	(&failure{Status: http.StatusMethodNotAllowed, Code: "method-not-allowed",
		Message: "this path takes " + strings.Join(allow, " and ")}).write(w)
}
