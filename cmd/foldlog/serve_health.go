package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
)

func (a *app) healthCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "health [URL]",
		Short: "Ask a server whether it is well",
		Long: `Ask a server whether it is well: it prints ok if the server answers and can reach its
root, and ends with exit status 1 if not. It needs no token. URL is
http://` + defaultAddress + ` if left out. Containers are watched by it.`,
		Example: "  foldlog serve health\n  foldlog serve health https://logs.example:7654",
		Args:    cmdline.Operands("[URL]"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		url := "http://" + defaultAddress
		if len(args) > 0 {
			url = strings.TrimSuffix(args[0], "/")
		}
		if err := healthy(c.Context(), url); err != nil {
			return err
		}
		_, err := fmt.Fprintln(a.Out(), "ok")
		return err
	}
	return c
}

// healthTime is how long a server that is well may take to say so.
const healthTime = 5 * time.Second

func healthy(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("ask server: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask server: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return fmt.Errorf("ask server: %w", err)
	}
	if resp.StatusCode != http.StatusOK || strings.TrimSpace(string(b)) != "ok" {
		return fmt.Errorf("%s is not well: %s", url, resp.Status)
	}
	return nil
}
