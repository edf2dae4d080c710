package proctest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports of addresses lie below those that systems give to who asks for any, which
// another process may be given at any time.
const firstPort, ports = 20_000, 12_000

// Address returns an address on loopback that nothing listens at, for a process that is
// told where to listen and may be started there again.
func Address() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", errors.New("find a port: all that were tried are taken")
}
