// Drive is the client of every benchmark: it makes the material that all servers share, then calls
// one server in a closed loop and says how it went.
//
//	drive prepare -dir DIR -step-port N [-p384 N] [-rsa N]
//	drive issue   -api vidimus|step|cfssl -address HOST:PORT ...
//	drive health  -address HOST:PORT -mode connect|calls ...
//	drive bare    -address HOST:PORT -mode http|echo ...
//	drive idle    -address HOST:PORT -count N ...
//	drive echo    -address HOST:PORT
//
// A loop prints "ready" once everything is prepared and its connections stand, waits for a line on
// standard input, runs, and prints one JSON object. So whoever measures the server measures
// nothing but the loop.
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func([]string) error{
		"prepare": prepare,
		"issue":   issue,
		"health":  health,
		"bare":    bare,
		"idle":    idle,
		"echo":    echo,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: drive prepare|issue|health|bare|idle|echo [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
