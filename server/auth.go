package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/server/internal/wire"
)

// principal is who a request comes from. A server without tokens has one for
// everybody, who may do anything.
type principal struct {
	open  bool
	token Token
}

func (p *principal) may(action, thing string) bool {
	if p.open {
		return true
	}
	for _, scope := range p.token.Scopes {
		if allows(scope, action, thing) {
			return true
		}
	}
	return false
}

type principalKey struct{}

// need answers 403 unless the request may do this to that thing: "runs/SLUG",
// "studies/NAME" or "datagen/PIPELINE/EXPERIMENT".
func need(ctx context.Context, action, thing string) error {
	p, ok := ctx.Value(principalKey{}).(*principal)
	if !ok {
		return problem(http.StatusUnauthorized, "no token")
	}
	if !p.may(action, thing) {
		return problem(http.StatusForbidden, "this token may not "+action+" here")
	}
	return nil
}

const sessionCookie = "foldlog_session"

// secretOf is the token that a request shows: in its header, or, as a browser
// does, in the cookie of a session.
func secretOf(r *http.Request) string {
	if auth := r.Header.Get("Authorization"); auth != "" {
		scheme, secret, _ := strings.Cut(auth, " ")
		if strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(secret)
		}
		return auth
	}
	if c, err := r.Cookie(sessionCookie); err == nil {
		return c.Value
	}
	return ""
}

// identified finds out whose a request is. Below /api everybody must show a token
// that may read, or for anything but reading one that may write something;
// handlers then look at what it is about.
func (s *Server) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &principal{open: s.tokens == nil}
		if !p.open && private(r.URL.Path) {
			token, ok := s.tokens.find(secretOf(r), time.Now())
			switch {
			case !ok && secretOf(r) == "":
				w.Header().Set("WWW-Authenticate", "Bearer")
				refuse(w, http.StatusUnauthorized, "no token")
				return
			case !ok:
				w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
				refuse(w, http.StatusUnauthorized, "wrong token")
				return
			}
			p.token = token
			action := ScopeWrite
			if r.Method == http.MethodGet || r.Method == http.MethodHead || readingPost(r.URL.Path) {
				action = ScopeRead
			}
			if r.URL.Path != sessionPath && !p.may(action, "") {
				refuse(w, http.StatusForbidden, "this token may not "+action)
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
	})
}

// readingPost tells which paths are posted to only because they are asked so much.
func readingPost(path string) bool {
	return path == seriesPath || strings.HasPrefix(path, "/api/v1/datagen/") && strings.HasSuffix(path, "/classify")
}

const sessionPath = "/api/v1/session"

// private tells which paths need a token: all of the API and the counters, except
// opening a session, which brings one, and closing it.
func private(path string) bool {
	if path == sessionPath+"/open" || path == sessionPath+"/close" || path == "/api/v1/openapi.json" || path == "/api/v1/openapi.yaml" {
		return false
	}
	return strings.HasPrefix(path, "/api/") || path == "/metrics"
}

type sessionInput struct {
	Body struct {
		Token string `json:"token" maxLength:"200" doc:"the token as it was made"`
	}
}

type sessionOutput struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      wire.SessionInfo
}

func (s *Server) registerSession(api huma.API) {
	huma.Register(api, operation(http.MethodGet, sessionPath, "session", "Who am I", "session"),
		func(ctx context.Context, _ *struct{}) (*struct{ Body wire.SessionInfo }, error) {
			p, _ := ctx.Value(principalKey{}).(*principal)
			return &struct{ Body wire.SessionInfo }{infoOf(p)}, nil
		})
	op := operation(http.MethodPost, sessionPath+"/open", "open-session", "Put a token into the cookie of a session", "session")
	op.Description = "A browser cannot send a header with an event stream. The cookie is HttpOnly and SameSite=Strict."
	huma.Register(api, op, s.openSession)
	huma.Register(api, operation(http.MethodPost, sessionPath+"/close", "close-session", "Forget the cookie of a session", "session"),
		func(context.Context, *struct{}) (*struct {
			SetCookie http.Cookie `header:"Set-Cookie"`
		}, error) {
			return &struct {
				SetCookie http.Cookie `header:"Set-Cookie"`
			}{s.cookie("", -1)}, nil
		})
}

func (s *Server) openSession(_ context.Context, in *sessionInput) (*sessionOutput, error) {
	if s.tokens == nil {
		return &sessionOutput{SetCookie: s.cookie("", -1), Body: infoOf(&principal{open: true})}, nil
	}
	token, ok := s.tokens.find(in.Body.Token, time.Now())
	if !ok {
		return nil, problem(http.StatusUnauthorized, "wrong token")
	}
	const days30 = 30 * 24 * 60 * 60
	return &sessionOutput{SetCookie: s.cookie(in.Body.Token, days30), Body: infoOf(&principal{token: token})}, nil
}

func (s *Server) cookie(value string, maxAge int) http.Cookie {
	return http.Cookie{Name: sessionCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true,
		Secure: s.secure, SameSite: http.SameSiteStrictMode}
}

func infoOf(p *principal) wire.SessionInfo {
	if p == nil {
		return wire.SessionInfo{Scopes: []string{}}
	}
	scopes := p.token.Scopes
	if p.open {
		scopes = []string{ScopeAdmin}
	}
	return wire.SessionInfo{Open: p.open, ID: p.token.ID, Name: p.token.Name, Scopes: scopes}
}
