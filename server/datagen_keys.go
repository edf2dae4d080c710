package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/foldlog/foldlog/datagen"
)

// claimAsk is what a client has asked for with a key: one claim, however often the
// request comes. What has a claim stays for as long as that, and a while longer.
type claimAsk struct {
	what string
	// turn is held by the one request that looks for an item; the others wait for it.
	turn chan struct{}

	// What follows is over the lock of the log's writer.
	users int
	claim *itemClaim
	gone  bool // it had a claim
}

// keptAsks is how many keys are remembered whose claims are gone, so that a request that
// comes late takes no item that nobody works on.
const keptAsks = 1000

// claimGone answers whoever shows a claim that is no more.
func claimGone() error {
	return problem(http.StatusGone, "the claim is gone: claim the item again, its steps tell what was recorded")
}

// once calls find for the first of the requests with the same key, or for the next one
// if that found nothing, and gives the claim to all of them.
func (l *datagenLog) once(ctx context.Context, w *datagenWriter, in *claimItemInput, find func() (*itemClaim, error)) (*itemClaim, error) {
	if in.Body.Key == "" {
		return find()
	}
	body, err := json.Marshal(&in.Body)
	if err != nil {
		return nil, err
	}
	ask, err := l.ask(w, in.Body.Key, datagen.Checksum(body))
	if err != nil {
		return nil, err
	}
	defer l.askDone(w, in.Body.Key, ask)
	select {
	case ask.turn <- struct{}{}:
		defer func() { <-ask.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c, err := l.askedFor(ask); c != nil || err != nil {
		return c, err
	}
	return find()
}

func (l *datagenLog) ask(w *datagenWriter, key, what string) (*claimAsk, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	ask := w.asks[key]
	if ask == nil {
		ask = &claimAsk{what: what, turn: make(chan struct{}, 1)}
		w.asks[key] = ask
	}
	if ask.what != what {
		return nil, problem(http.StatusConflict, "the key was used for something else")
	}
	ask.users++
	return ask, nil
}

// askDone forgets a key that has given nothing and that nobody waits for.
func (l *datagenLog) askDone(w *datagenWriter, key string, ask *claimAsk) {
	l.writing.Lock()
	defer l.writing.Unlock()
	ask.users--
	if ask.users == 0 && ask.claim == nil && !ask.gone {
		delete(w.asks, key)
	}
}

func (l *datagenLog) askedFor(ask *claimAsk) (*itemClaim, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if ask.gone {
		return nil, claimGone()
	}
	return ask.claim, nil
}

// keep has a claim known, to its key too.
func (w *datagenWriter) keep(c *itemClaim) {
	w.claims[c.id] = c
	if ask := w.asks[c.key]; ask != nil {
		ask.claim = c
	}
}

// forget is the end of a claim.
func (w *datagenWriter) forget(c *itemClaim) {
	delete(w.claims, c.id)
	ask := w.asks[c.key]
	if ask == nil || ask.claim != c {
		return
	}
	ask.claim, ask.gone = nil, true
	w.past = append(w.past, c.key)
	if len(w.past) > keptAsks {
		delete(w.asks, w.past[0])
		w.past = w.past[1:]
	}
}
