package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
)

type Number interface {
	~int | ~int64 | ~float64
}

func Sum[T Number](values ...T) T {
	var total T
	for _, value := range values {
		total += value
	}
	return total
}

const help = `usage: pool [file]
Counts words; "-" is standard input.`

func count(lines <-chan string, results chan<- map[string]int, wg *sync.WaitGroup) {
	defer wg.Done()
	found := make(map[string]int)
	for line := range lines {
		for _, word := range strings.Fields(line) {
			found[strings.ToLower(word)]++
		}
	}
	results <- found
}

func main() {
	if len(os.Args) > 2 {
		fmt.Fprintln(os.Stderr, help)
		os.Exit(2)
	}
	lines, results := make(chan string, 16), make(chan map[string]int)
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go count(lines, results, &wg)
	}
	go func() {
		scanner := bufio.NewScanner(os.Stdin)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		close(lines)
		wg.Wait()
		close(results)
	}()
	total := 0
	for found := range results {
		for _, n := range found {
			total += n
		}
	}
	fmt.Printf("%d words, %v\n", total, Sum(1, 2, 3))
}
