// Package parallel makes calls that wait for a disk or a store side by side.
package parallel

import "sync"

// Each calls do for 0 to n-1, so many at a time, and returns the error of the
// lowest of them that failed.
func Each(n, workers int, do func(int) error) error {
	if n <= 1 || workers <= 1 {
		return inTurn(n, do)
	}
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(n, workers) {
		wg.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func inTurn(n int, do func(int) error) error {
	for i := range n {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}
