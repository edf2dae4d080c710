package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// tokenPrefix begins every token, so that people and scanners know one.
const tokenPrefix = "foldlog_"

// Token is one entry of a tokens file. The secret itself is nowhere.
type Token struct {
	// ID names the token, in lists and when it is revoked.
	ID string `json:"id"`
	// Name says for people what it is for.
	Name string `json:"name"`
	// Scopes are what it may do; see [CheckScope].
	Scopes []string `json:"scopes"`
	// Hash is the SHA-256 of the whole token in hexadecimal. A token has 256
	// random bits: there is nothing that a slow hash would protect.
	Hash string `json:"sha256"`
	// CreatedMS is when it was made, Unix epoch in milliseconds.
	CreatedMS int64 `json:"created_ms"`
}

// Scopes of a token.
const (
	ScopeRead  = "read"  // everything that is there
	ScopeWrite = "write" // to every run, study and experiment
	ScopeAdmin = "admin" // everything
)

var (
	// ErrScope means that a text is no scope: see [CheckScope].
	ErrScope = errors.New("unknown scope")
	// ErrNoToken means that there is no such token.
	ErrNoToken = errors.New("no such token")
)

// CheckScope refuses with [ErrScope] what is not read, write, admin,
// write:runs/PATTERN, write:studies/PATTERN or write:datagen/PIPELINE/EXPERIMENT, with
// patterns as in package path.
func CheckScope(scope string) error {
	switch scope {
	case ScopeRead, ScopeWrite, ScopeAdmin:
		return nil
	}
	for _, kind := range []string{"write:runs/", "write:studies/", "write:datagen/"} {
		if pattern, ok := strings.CutPrefix(scope, kind); ok && pattern != "" {
			if _, err := path.Match(pattern, ""); err != nil {
				return fmt.Errorf("%w: %q: %w", ErrScope, scope, err)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: %q is not read, write, admin, write:runs/PATTERN, write:studies/PATTERN or write:datagen/PIPELINE/EXPERIMENT", ErrScope, scope)
}

// allows tells whether a scope covers an action on a thing: "runs/SLUG",
// "studies/NAME" or "datagen/PIPELINE/EXPERIMENT", "" for any of them.
func allows(scope, action, thing string) bool {
	if scope == ScopeAdmin || scope == action {
		return true
	}
	rest, ok := strings.CutPrefix(scope, "write:")
	if !ok || action != ScopeWrite {
		return false
	}
	if thing == "" {
		return true
	}
	kind, pattern, _ := strings.Cut(rest, "/")
	name, ok := strings.CutPrefix(thing, kind+"/")
	if !ok {
		return false
	}
	match, err := path.Match(pattern, name)
	return err == nil && match
}

// Tokens is a file of tokens, which may change while a server reads it.
type Tokens struct {
	path string

	mu      sync.Mutex
	info    fs.FileInfo
	checked time.Time
	list    []Token
}

// tokensFile is what the file holds.
type tokensFile struct {
	Tokens []Token `json:"tokens"`
}

// OpenTokens reads a file of tokens; one that is not there has none.
func OpenTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path}
	return t, t.load()
}

func (t *Tokens) load() error {
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.info, t.list = nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}
	if t.info != nil && os.SameFile(info, t.info) && info.ModTime().Equal(t.info.ModTime()) && info.Size() == t.info.Size() {
		return nil
	}
	b, err := os.ReadFile(t.path)
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}
	var file tokensFile
	if err := json.Unmarshal(b, &file); err != nil {
		return fmt.Errorf("read tokens %s: %w", t.path, err)
	}
	t.info, t.list = info, file.Tokens
	return nil
}

// tokensEvery is how often the file is looked at.
const tokensEvery = time.Second

// List returns the tokens as the file has them now.
func (t *Tokens) List() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.load()
	return slices.Clone(t.list), err
}

// find returns the token whose secret this is. A file that has become
// unreadable changes nothing: the tokens stay what they were.
func (t *Tokens) find(secret string, now time.Time) (Token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.checked) > tokensEvery {
		_ = t.load()
		t.checked = now
	}
	sum := sha256.Sum256([]byte(secret))
	hash := []byte(hex.EncodeToString(sum[:]))
	at := -1
	for i := range t.list {
		if subtle.ConstantTimeCompare(hash, []byte(t.list[i].Hash)) == 1 {
			at = i
		}
	}
	if at < 0 {
		return Token{}, false
	}
	return t.list[at], true
}

// Add makes a token and returns its secret, which is kept nowhere. Errors: ErrScope,
// or what the file system said.
func (t *Tokens) Add(name string, scopes []string, now time.Time) (Token, string, error) {
	if len(scopes) == 0 {
		return Token{}, "", fmt.Errorf("add token: %w: there is none", ErrScope)
	}
	for _, scope := range scopes {
		if err := CheckScope(scope); err != nil {
			return Token{}, "", fmt.Errorf("add token: %w", err)
		}
	}
	var random [36]byte
	rand.Read(random[:])
	secret := tokenPrefix + base64.RawURLEncoding.EncodeToString(random[4:])
	sum := sha256.Sum256([]byte(secret))
	token := Token{ID: hex.EncodeToString(random[:4]), Name: name, Scopes: scopes, Hash: hex.EncodeToString(sum[:]), CreatedMS: now.UnixMilli()}
	err := t.change(func(list []Token) ([]Token, error) { return append(list, token), nil })
	if err != nil {
		return Token{}, "", fmt.Errorf("add token: %w", err)
	}
	return token, secret, nil
}

// Revoke removes a token by its id. The error is ErrNoToken if there is none.
func (t *Tokens) Revoke(id string) error {
	err := t.change(func(list []Token) ([]Token, error) {
		rest := slices.DeleteFunc(list, func(token Token) bool { return token.ID == id })
		if len(rest) == len(list) {
			return nil, fmt.Errorf("%w: %q", ErrNoToken, id)
		}
		return rest, nil
	})
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

// change replaces the file whole, readable by its owner alone.
func (t *Tokens) change(edit func([]Token) ([]Token, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(); err != nil {
		return err
	}
	list, err := edit(slices.Clone(t.list))
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(tokensFile{list}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(t.path), ".tokens-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(append(b, '\n'))
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), t.path); err != nil {
		return err
	}
	t.list, t.info = list, nil
	return nil
}
