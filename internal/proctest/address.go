package proctest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
)

// The ports of addresses lie below those that systems give to who asks for any, which
// another process may be given at any time.
const firstPort, ports = 20_000, 12_000

// Address returns an address on loopback that nothing listens at, for a process that is
// told where to listen and may be started there again. It stays free meanwhile: it is drawn
// from so many that nobody comes to the same one, where all of 127.0.0.0/8 is loopback.
func Address() (string, error) {
	for try := range 100 {
		host := "127.0.0.1"
		if runtime.GOOS == "linux" && try < 50 {
			host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
		}
		address := fmt.Sprintf("%s:%d", host, firstPort+rand.IntN(ports))
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", errors.New("find a port: all that were tried are taken")
}
