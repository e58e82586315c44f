// A server of MongoDB's protocol over SQLite files, for tests: FerretDB's embeddable package, which
// reports nothing to anybody and opens no second port. `go install` of its own command does not
// work: the published module lacks the version file that the command insists on.
//
// Usage: engine-ferretdb <folder> <host:port>. Ends at SIGTERM.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "engine-ferretdb:", err)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: engine-ferretdb <folder> <host:port>"))
	}
	folder, err := filepath.Abs(os.Args[1])
	if err != nil {
		fail(err)
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[2]},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Handler:   "sqlite",
		SQLiteURL: "file:" + folder + "/",
	})
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := server.Run(ctx); err != nil {
		fail(err)
	}
}
