package books

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Book is what a reader sees.
type Book struct {
	ID    int    `json:"id"`
	Title string `json:"title,omitempty"`
}

func Show(find func(string) (*Book, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		book, err := find(r.PathValue("id"))
		if err != nil {
			http.Error(w, fmt.Sprintf("no book %q\n", r.PathValue("id")), http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"book": book, "ok": true})
	}
}
