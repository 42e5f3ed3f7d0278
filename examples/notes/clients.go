package notes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/semel-dev/semel"
)

// tries is how often both clients send.
const tries = 2

// ErrRefused says that the service has answered, and that the answer is no:
// sending it again would change nothing.
var ErrRefused = errors.New("refused")

// SaveOnce saves a note. Its key is made before the first send and is the same at
// every try, so the note is there once, whatever became of the answers.
func SaveOnce(ctx context.Context, client *http.Client, url, title string) (Note, error) {
	return SaveWith(ctx, client, url, semel.NewID(), title)
}

// SaveWith is SaveOnce with a key of the caller's.
func SaveWith(ctx context.Context, client *http.Client, url, key, title string) (note Note, err error) {
	for range tries {
		if note, err = send(ctx, client, url, key, title); err == nil || errors.Is(err, ErrRefused) {
			break
		}
	}
	return note, err
}

// SaveAgain is wrong: it makes a new key for every try, so a lost answer makes a
// second note.
func SaveAgain(ctx context.Context, client *http.Client, url, title string) (note Note, err error) {
	for range tries {
		if note, err = send(ctx, client, url, semel.NewID(), title); err == nil {
			break
		}
	}
	return note, err
}

func send(ctx context.Context, client *http.Client, url, key, title string) (Note, error) {
	body, err := json.Marshal(map[string]string{"title": title})
	if err != nil {
		return Note{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/notes", bytes.NewReader(body))
	if err != nil {
		return Note{}, err
	}
	req.GetBody = nil // else the transport may send it again by itself
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := client.Do(req)
	if err != nil {
		return Note{}, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return Note{}, fmt.Errorf("%w: %s", ErrRefused, resp.Status)
	case resp.StatusCode != http.StatusCreated:
		return Note{}, fmt.Errorf("the service answered %s", resp.Status)
	}
	var note Note
	return note, json.NewDecoder(resp.Body).Decode(&note)
}
