package main

import (
	"net"
	"testing"
)

func TestThePrintedAddressCanBeOpened(t *testing.T) {
	for name, test := range map[string]struct {
		ip    net.IP
		hosts []string
		want  string
	}{
		"every address":              {net.IPv6unspecified, nil, "localhost:7654"},
		"every address of version 4": {net.IPv4zero, nil, "localhost:7654"},
		"every address, with a name": {net.IPv6unspecified, []string{"logs.example", "other"}, "logs.example:7654"},
		"one address":                {net.IPv4(127, 0, 0, 1), []string{"logs.example"}, "127.0.0.1:7654"},
		"one address of version 6":   {net.IPv6loopback, nil, "[::1]:7654"},
	} {
		t.Run(name, func(t *testing.T) {
			o := serveOptions{hosts: test.hosts}
			if got := o.reachedAt(&net.TCPAddr{IP: test.ip, Port: 7654}); got != test.want {
				t.Errorf("reachedAt = %s, want %s", got, test.want)
			}
		})
	}
}
