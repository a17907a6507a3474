package parcels

import (
	&quot;context&quot;
	&quot;encoding/json&quot;
	&quot;errors&quot;
	&quot;fmt&quot;
	&quot;net/http&quot;
	&quot;time&quot;
)

// ErrNotFound says that there is no such parcel.
var ErrNotFound = errors.New(&quot;parcel not found&quot;)

type Parcel struct {
	ID     int64     `json:&quot;id&quot;`
	Street string    `json:&quot;street&quot;`
	Added  time.Time `json:&quot;added,omitempty&quot;`
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
	return &amp;Handler{
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
			fail(w, fmt.Errorf(&quot;list: %w&quot;, err))
			return
		}
		w.Header().Set(&quot;Content-Type&quot;, &quot;application/json&quot;)
		_ = json.NewEncoder(w).Encode(map[string]any{
			&quot;count&quot;: len(rows),
			&quot;items&quot;: rows,
		})
	default:
		http.Error(w, &quot;method not allowed&quot;, http.StatusMethodNotAllowed)
	}
}

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, ErrNotFound) {
		code = http.StatusNotFound
	}
	http.Error(w, err.Error(), code)
}
