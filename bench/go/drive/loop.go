package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// errExhausted ends a worker without being counted: there is nothing left to send.
var errExhausted = errors.New("nothing left to send")

// report is what a loop prints.
type report struct {
	Calls      int     `json:"calls"`
	Errors     int     `json:"errors"`
	FirstError string  `json:"first_error"`
	Seconds    float64 `json:"seconds"`
	P50Micros  float64 `json:"p50_us"`
	P99Micros  float64 `json:"p99_us"`
}

// loop says ready, waits for the word, and runs call on each worker until the time is over or
// nothing is left to send.
func loop(workers int, length time.Duration, call func(worker int) error) error {
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("nobody said go: %w", err)
	}

	start := time.Now()
	end := start.Add(length)
	took := make([][]time.Duration, workers)
	failed := make([]error, workers)
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for before := time.Now(); before.Before(end); {
				if err := call(worker); err != nil {
					failed[worker] = err
					return
				}
				after := time.Now()
				took[worker] = append(took[worker], after.Sub(before))
				before = after
			}
		})
	}
	wait.Wait()
	return json.NewEncoder(os.Stdout).Encode(summary(time.Since(start), took, failed))
}

func summary(elapsed time.Duration, took [][]time.Duration, failed []error) report {
	all := slices.Concat(took...)
	slices.Sort(all)
	result := report{Calls: len(all), Seconds: elapsed.Seconds()}
	for _, err := range failed {
		if err != nil && !errors.Is(err, errExhausted) {
			result.Errors++
			result.FirstError = err.Error()
		}
	}
	if len(all) > 0 {
		result.P50Micros = float64(all[len(all)/2].Nanoseconds()) / 1e3
		result.P99Micros = float64(all[len(all)*99/100].Nanoseconds()) / 1e3
	}
	return result
}
