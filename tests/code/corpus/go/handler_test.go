package parcels

import (
	"net/http/httptest"
	"testing"
)

type fake struct{ rows []Parcel }

func TestList(t *testing.T) {
	tests := []struct {
		name string
		rows []Parcel
		want int
	}{
		{"none", nil, 0},
		{"two", []Parcel{{ID: 1}, {ID: 2, Street: "Long Lane"}}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			request := httptest.NewRequest("GET", "/parcels", nil)
			NewHandler(&fake{rows: tt.rows}, 10).ServeHTTP(recorder, request)
			if got := recorder.Code; got != 200 {
				t.Fatalf("code %d, want 200", got)
			}
			if recorder.Body.Len() == 0 && tt.want > 0 {
				t.Error("no body")
			}
		})
	}
}
