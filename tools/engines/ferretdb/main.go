// A server of MongoDB's protocol over SQLite files, for tests: FerretDB's embeddable package, which
// sends no telemetry and opens no second port. `go install` of its own command does not work: the
// published module lacks the version file that the command insists on.
//
// Usage: engine-ferretdb <absolute folder> <host:port>
package main

import (
	"context"
	"log"
	"log/slog"
	"os"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[2]},
		Logger:    slog.Default(),
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[1] + "/",
	})
	if err == nil {
		err = server.Run(context.Background())
	}
	log.Fatal(err)
}
