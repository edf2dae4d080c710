package server

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

// contentPolicy lets the page load nothing but itself and talk to nobody else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; " +
	"font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// guarded sets the headers of every answer, and refuses requests that a page of
// somebody else could make a browser send: with a foreign name for this server
// (DNS rebinding), or from a foreign origin.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if s.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !s.knownHost(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "this server does not go by that name; foldlog serve --host adds one")
			return
		}
		if !sameOrigin(r) {
			refuse(w, http.StatusForbidden, "the request comes from a page of another origin")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), hostKey{}, r.Host)))
	})
}

// knownHost accepts addresses, which no foreign name can stand for, the names of
// this machine, and those that the server was given.
func (s *Server) knownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.Trim(strings.ToLower(name), "[]"), ".")
	if name == "localhost" || net.ParseIP(name) != nil {
		return true
	}
	return slices.Contains(s.hosts, name)
}

// hostNames are the names that the server goes by.
func hostNames(given []string) []string {
	var names []string
	for _, name := range given {
		names = append(names, strings.ToLower(strings.TrimSuffix(name, ".")))
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, strings.ToLower(name))
	}
	return names
}

// sameOrigin trusts a request without the headers by which browsers tell: it
// comes from no browser.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		// Following a link to a page is harmless, reading data is not.
		return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && !strings.HasPrefix(r.URL.Path, "/api/")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}
