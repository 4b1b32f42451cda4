// Works on orders as a member of the group "billing", until it is told to stop: billing NAME
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	name, bootstrap := os.Args[1], "127.0.0.1:9092"
	if set := os.Getenv("BOOTSTRAP_SERVERS"); set != "" {
		bootstrap = set
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup("billing"),
		kgo.ClientID("billing-"+name),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		// A batch comes to its end, and is committed, before its partition may go to another member.
		kgo.BlockRebalanceOnPoll(),
	)
	if err != nil {
		log.Fatal(err)
	}
	// Leaves the group at once: the other members need not wait for the session to end.
	defer client.CloseAllowingRebalance()

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 100)
		fetches.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil {
				log.Printf("%s/%d: %v", topic, partition, err)
			}
		})
		fetches.EachRecord(func(record *kgo.Record) { work(name, record) })
		if err := client.CommitRecords(context.Background(), fetches.Records()...); err != nil {
			// What is not committed comes again.
			log.Printf("commit: %v", err)
		}
		client.AllowRebalance()
	}
}

func work(name string, record *kgo.Record) {
	time.Sleep(time.Millisecond)
	fmt.Println(name, string(record.Key), string(record.Value))
}
