package parcels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrNotFound says that there is no such parcel.
var ErrNotFound = errors.New("parcel not found")

type Parcel struct {
	ID     int64     `json:"id"`
	Street string    `json:"street"`
	Added  time.Time `json:"added,omitempty"`
}

type Store interface {
	Get(ctx context.Context, id int64) (*Parcel, error)
	List(ctx context.Context, limit int) ([]Parcel, error)
}

type Handler struct {
	store Store
	limit int
}

func NewHandler(store Store, limit int) *Handler {
	return &Handler{
		store: store,
		limit: limit,
	}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()

	switch r.Method {
	case http.MethodGet:
		rows, err := h.store.List(ctx, h.limit)
		if err != nil {
			fail(w, fmt.Errorf("list: %w", err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"count": len(rows),
			"items": rows,
		})
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, ErrNotFound) {
		code = http.StatusNotFound
	}
	http.Error(w, err.Error(), code)
}
