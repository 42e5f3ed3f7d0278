package orders

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// A Service takes orders, in memory. It keeps what [Contract] says:
//
//	POST /orders   Idempotency-Key: …   {"dish":"…"}   → 201 with the order
//	GET  /orders?key=…                                 → the orders of that key: one or none
//
// It is safe for concurrent use. The zero Service is ready.
type Service struct {
	mu     sync.Mutex
	orders []Order
	first  map[string]placed // by key
}

// placed is the first request of a key, and what came of it.
type placed struct {
	body  string
	order Order
}

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/orders":
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		s.place(w, r)
	default:
		list := []Order{}
		s.mu.Lock()
		if p, ok := s.first[r.URL.Query().Get("key")]; ok {
			list = append(list, p.order)
		}
		s.mu.Unlock()
		answer(w, http.StatusOK, list)
	}
}

func (s *Service) place(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	var order Order
	if err != nil || json.Unmarshal(body, &order) != nil || order.Dish == "" || key == "" {
		http.Error(w, "an order has a dish, and a key", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.first[key]; ok {
		if p.body != string(body) {
			http.Error(w, "this key is another order's", http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Idempotency-Replayed", "true")
		answer(w, http.StatusCreated, p.order)
		return
	}
	order.Number = len(s.orders) + 1
	s.orders = append(s.orders, order)
	if s.first == nil {
		s.first = map[string]placed{}
	}
	s.first[key] = placed{string(body), order}
	answer(w, http.StatusCreated, order)
}

// Orders returns all orders.
func (s *Service) Orders() []Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Order(nil), s.orders...)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}
