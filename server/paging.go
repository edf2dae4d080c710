package server

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/foldlog/foldlog/datagen"
)

// encodeCursor makes a cursor, which is opaque to clients.
func encodeCursor(parts ...string) string {
	b, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor answers 400 where a cursor is not one of this server with that
// many parts.
func decodeCursor(cursor string, n int) ([]string, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	var parts []string
	if err == nil {
		err = json.Unmarshal(b, &parts)
	}
	if err != nil || len(parts) != n {
		return nil, problem(http.StatusBadRequest, "the cursor is not one of this server")
	}
	return parts, nil
}

// Sizes of pages.
const (
	defaultPage = 100
	mostPage    = 1000
)

func pageSize(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, mostPage)
}

// indexCursor is a cursor that counts.
func indexCursor(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	parts, err := decodeCursor(cursor, 1)
	if err != nil {
		return 0, err
	}
	n, err := parseOffset(parts[0])
	return int(n), err
}

// pageOf is the part of a list from an index on, limit long at most, and the cursor of
// what follows, "" for nothing.
func pageOf[T any](list []T, from, limit int) (part []T, next string) {
	from = min(from, len(list))
	end := from + min(limit, len(list)-from)
	if end < len(list) {
		next = encodeCursor(strconv.Itoa(end))
	}
	return list[from:end], next
}

// placeCursor reads the cursor of a list of items: the place of the last one.
func placeCursor(cursor string) (*datagen.ItemPlace, error) {
	parts, err := decodeCursor(cursor, 2)
	if err != nil {
		return nil, err
	}
	key, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "the cursor is not one of this server")
	}
	return &datagen.ItemPlace{Key: key, ID: parts[1]}, nil
}

// placeAfter is the cursor of what follows a page of items, "" if it is not full, or
// in the reverse order, which has no next page.
func placeAfter(q datagen.ItemQuery, list []datagen.ItemSummary) string {
	if q.Reverse || len(list) < q.Limit {
		return ""
	}
	last := q.Order.Place(&list[len(list)-1])
	return encodeCursor(strconv.FormatInt(last.Key, 10), last.ID)
}
