// Command interop is the foreign peer of Vidimus' provider and manager: a client and a server made
// of grpc-go alone, with VirtRigaud's settings. What happens is written to standard output, one
// JSON object a line; a server is told what to do over a small HTTP page.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: interop client|server|echo-client|echo-server [flags]"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	var run func() error
	switch os.Args[1] {
	case "client":
		run = clientCommand(flags)
	case "server":
		run = serverCommand(flags)
	case "echo-client":
		run = echoClientCommand(flags)
	case "echo-server":
		run = echoServerCommand(flags)
	default:
		fail(fmt.Errorf("no such command: %s", os.Args[1]))
	}
	if err := flags.Parse(os.Args[2:]); err != nil {
		fail(err)
	}
	if err := run(); err != nil {
		fail(err)
	}
}

var printing sync.Mutex

// say writes one event.
func say(event map[string]any) {
	printing.Lock()
	defer printing.Unlock()
	line, err := json.Marshal(event)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(line))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
