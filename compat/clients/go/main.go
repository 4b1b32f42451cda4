// Command driver speaks for one Go client library: driver franz-go | sarama | kafka-go.
package main

import (
	"fmt"
	"os"
)

func main() {
	libraries := map[string]func() library{"franz-go": newFranz, "sarama": newSarama, "kafka-go": newSegmentio}
	if len(os.Args) != 2 || libraries[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: driver franz-go | sarama | kafka-go")
		os.Exit(2)
	}
	serve(libraries[os.Args[1]]())
}
