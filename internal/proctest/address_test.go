package proctest

import (
	"net"
	"testing"
)

func TestAnAddressMayBeListenedAtAgainAndAgain(t *testing.T) {
	address, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}
