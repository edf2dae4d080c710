package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/foldlog/foldlog/datagen"
)

type blobInput struct {
	ID       string `path:"id" maxLength:"64"`
	Event    string `path:"event" maxLength:"200" doc:"that holds the blob"`
	Size     int64  `query:"size" minimum:"0" required:"true" doc:"as the item says"`
	Checksum string `query:"checksum" maxLength:"100" required:"true" doc:"as the item says"`
}

// rasterTypes are the images that a browser may show by themselves. Others, and
// everything else, are attachments: they could hold a script.
var rasterTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/bmp": true}

// getBlob answers with the bytes of a blob, which are checked against its checksum
// first. Parts can be asked for by Range.
func (s *Server) getBlob(ctx context.Context, in *blobInput) (*huma.StreamResponse, error) {
	_, v, err := s.view(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if in.Size > datagen.MaxBlobBytes {
		return nil, problem(http.StatusBadRequest, "no blob is so large")
	}
	if !s.bodies.take(in.Size) {
		return nil, problem(http.StatusServiceUnavailable, "too many requests at once")
	}
	b, err := v.Blob(ctx, datagen.BlobRef{Event: in.Event, Size: in.Size, Checksum: in.Checksum})
	if err != nil {
		s.bodies.give(in.Size)
		return nil, s.answer(err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer s.bodies.give(in.Size)
		r, w := humago.Unwrap(hc)
		kind := http.DetectContentType(b)
		disposition := "inline"
		if !rasterTypes[kind] {
			kind, disposition = "application/octet-stream", "attachment"
		}
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Disposition", disposition+`; filename="`+in.ID+`"`)
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
		h.Set("ETag", `"`+datagen.Checksum(b)+`"`)
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.Write + time.Duration(len(b)>>16)*time.Second)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			s.log.Debug("no deadline", "err", err)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}}, nil
}
