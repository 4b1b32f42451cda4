package main

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// moduleVersion is the version of a module that this program was built with.
func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "unknown"
}

// franz drives franz-go.
type franz struct {
	producers map[string]*kgo.Client
	members   map[string]*franzMember
	admins    map[string]*kgo.Client
}

type franzMember struct {
	client *kgo.Client
	store  *store
	work   *working
	group  string
	stop   context.CancelFunc
	done   chan struct{}
}

func newFranz() library {
	return &franz{map[string]*kgo.Client{}, map[string]*franzMember{}, map[string]*kgo.Client{}}
}

func (f *franz) version() string { return moduleVersion("github.com/twmb/franz-go") }

func (f *franz) translate(err error) fault {
	var kafka *kerr.Error
	if errors.As(err, &kafka) {
		return kafkaFault(kafka.Message, int(kafka.Code), err.Error())
	}
	return fault{Name: "Error", Message: err.Error()}
}

func (f *franz) operations() map[string]func(arguments) (answer, error) {
	return map[string]func(arguments) (answer, error){
		"producer_open": f.producerOpen, "produce": f.produce, "producer_close": f.producerClose,
		"consumer_open": f.consumerOpen, "take": f.take, "commit": f.commit, "committed": f.committed, "seek": f.seek,
		"offsets_for_times": f.offsetsForTimes, "consumer_close": f.consumerClose, "metadata": f.metadata,
		"create_topic": f.createTopic, "delete_topic": f.deleteTopic, "add_partitions": f.addPartitions,
		"topic_configs": f.topicConfigs, "set_topic_config": f.setTopicConfig, "list_groups": f.listGroups,
		"describe_group": f.describeGroup, "delete_group": f.deleteGroup, "delete_records": f.deleteRecords, "reset": f.reset,
		"ui_cluster": f.page(uiCluster), "ui_topics": f.page(uiTopics), "ui_groups": f.page(uiGroups),
		"ui_security": f.page(uiSecurity), "ui_reset": f.page(uiReset), "ui_forget": f.page(uiForget),
		"ui_reassign": f.page(uiReassign), "ui_replace_configs": f.page(uiReplaceConfigs),
	}
}

func within(seconds int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
}

func quick(bootstrap string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
}

func (f *franz) producerOpen(a arguments) (answer, error) {
	codec := map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[a.Compression]
	options := append(quick(a.Bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec),
		kgo.AllowAutoTopicCreation())
	if !a.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if a.MaxBytes > 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(int32(a.MaxBytes)), kgo.BrokerMaxWriteBytes(100<<20))
	}
	if a.Retries != nil {
		options = append(options, kgo.RecordRetries(*a.Retries+1))
	}
	client, err := kgo.NewClient(options...)
	f.producers[a.Name] = client
	return nil, err
}

func (f *franz) produce(a arguments) (answer, error) {
	ctx, cancel := within(80)
	defer cancel()
	records := make([]*kgo.Record, len(a.Records))
	for i, r := range a.Records {
		records[i] = &kgo.Record{Topic: a.Topic, Key: r.Key, Value: r.Value}
		if r.Partition != nil {
			records[i].Partition = *r.Partition
		}
		if r.Timestamp != nil {
			records[i].Timestamp = time.UnixMilli(*r.Timestamp)
		}
		for _, h := range r.Headers {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
		}
	}
	results := f.producers[a.Name].ProduceSync(ctx, records...)
	if err := results.FirstErr(); err != nil {
		return nil, err
	}
	rows := make([][]int64, len(records))
	for i, r := range records {
		rows[i] = []int64{int64(r.Partition), r.Offset}
	}
	return answer{"results": rows}, nil
}

func (f *franz) producerClose(a arguments) (answer, error) {
	f.producers[a.Name].Close()
	delete(f.producers, a.Name)
	return nil, nil
}

func (f *franz) consumerOpen(a arguments) (answer, error) {
	member := &franzMember{store: newStore(), work: a.Work, group: a.Group, done: make(chan struct{})}
	ctx := context.Background()
	options := append(quick(a.Bootstrap), kgo.FetchMaxWait(200*time.Millisecond))
	start := kgo.NewOffset().AtStart()
	if a.Reset == "latest" {
		start = kgo.NewOffset().AtEnd()
	}
	options = append(options, kgo.ConsumeResetOffset(start))
	if a.FetchBytes > 0 {
		options = append(options, kgo.FetchMaxBytes(int32(a.FetchBytes)), kgo.FetchMaxPartitionBytes(int32(a.FetchBytes)))
	}
	if a.Isolation == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if a.RefreshMs > 0 {
		options = append(options, kgo.MetadataMaxAge(time.Duration(a.RefreshMs)*time.Millisecond))
	}
	if a.AutoCreate {
		options = append(options, kgo.AllowAutoTopicCreation())
	}
	if a.Group == "" {
		assign := map[string]map[int32]kgo.Offset{}
		for _, p := range a.Assign {
			offset := map[int64]kgo.Offset{-2: kgo.NewOffset().AtStart(), -1: kgo.NewOffset().AtEnd()}
			where, special := offset[p.offset]
			if !special {
				where = kgo.NewOffset().At(p.offset)
			}
			if assign[p.topic] == nil {
				assign[p.topic] = map[int32]kgo.Offset{}
			}
			assign[p.topic][p.partition] = where
			member.store.give(map[string][]int32{p.topic: {p.partition}})
		}
		options = append(options, kgo.ConsumePartitions(assign))
	} else {
		options = append(options, groupOptions(a, member)...)
		if a.Protocol == "consumer" {
			// How this release lets one choose the new protocol.
			ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true) //nolint:staticcheck
			options = append(options, kgo.WithContext(ctx))
		}
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	member.client = client
	polling, stop := context.WithCancel(ctx)
	member.stop = stop
	f.members[a.Name] = member
	if member.work != nil {
		go member.pollAndWork(polling)
	} else {
		go member.poll(polling)
	}
	return nil, nil
}

func groupOptions(a arguments, member *franzMember) []kgo.Opt {
	balancer := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}[a.Assignor]
	if balancer == nil {
		balancer = kgo.RangeBalancer()
		if a.Protocol == "consumer" {
			balancer = kgo.StickyBalancer()
		}
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(a.Group), kgo.ConsumeTopics(a.Topics...), kgo.DisableAutoCommit(), kgo.Balancers(balancer),
		kgo.SessionTimeout(a.sessionTimeout()), kgo.HeartbeatInterval(500 * time.Millisecond), kgo.RebalanceTimeout(10 * time.Second),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { member.store.give(p) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { member.givenUp(p) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { member.givenUp(p) }),
	}
	if a.Instance != "" {
		options = append(options, kgo.InstanceID(a.Instance))
	}
	if a.Work != nil {
		// A batch that is in work comes to its end before the group changes.
		options = append(options, kgo.BlockRebalanceOnPoll())
	}
	return options
}

func (m *franzMember) givenUp(partitions map[string][]int32) {
	m.store.revoke(partitions)
	for _, list := range partitions {
		if len(list) > 0 {
			m.work.note("V")
			return
		}
	}
}

func (m *franzMember) pollAndWork(ctx context.Context) {
	defer close(m.done)
	for ctx.Err() == nil {
		fetches := m.client.PollRecords(ctx, m.work.Batch)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				m.work.note("F", "poll", err)
			}
		})
		records := fetches.Records()
		items := make([]item, len(records))
		for i, r := range records {
			items[i] = item{r.Partition, r.Offset, r.Value}
		}
		m.work.on(items, func(map[int32]int64) error {
			limited, cancel := within(40)
			defer cancel()
			return m.client.CommitRecords(limited, records...)
		})
		m.client.AllowRebalance()
	}
}

func (m *franzMember) poll(ctx context.Context) {
	defer close(m.done)
	for ctx.Err() == nil {
		fetches := m.client.PollRecords(ctx, 500)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				m.store.fail(err)
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			row := record{Topic: r.Topic, Partition: pointer(r.Partition), Offset: r.Offset, Key: r.Key, Value: r.Value,
				Timestamp: pointer(r.Timestamp.UnixMilli())}
			for _, h := range r.Headers {
				row.Headers = append(row.Headers, header{h.Key, h.Value})
			}
			m.store.add(row)
		})
	}
}

func (f *franz) take(a arguments) (answer, error) {
	return f.members[a.Name].store.take(a, f.translate), nil
}

func (f *franz) commit(a arguments) (answer, error) {
	ctx, cancel := within(40)
	defer cancel()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	text := map[place]string{}
	for _, p := range a.Offsets {
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.topic][p.partition] = kgo.EpochOffset{Epoch: -1, Offset: p.offset}
		text[place{topic: p.topic, partition: p.partition}] = p.metadata
	}
	ctx = kgo.PreCommitFnContext(ctx, func(request *kmsg.OffsetCommitRequest) error {
		for i := range request.Topics {
			for j := range request.Topics[i].Partitions {
				row := &request.Topics[i].Partitions[j]
				row.Metadata = pointer(text[place{topic: request.Topics[i].Topic, partition: row.Partition}])
			}
		}
		return nil
	})
	var failed error
	f.members[a.Name].client.CommitOffsetsSync(ctx, offsets,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, said *kmsg.OffsetCommitResponse, err error) {
			failed = err
			if said == nil {
				return
			}
			for _, topic := range said.Topics {
				for _, row := range topic.Partitions {
					failed = errors.Join(failed, kerr.ErrorForCode(row.ErrorCode))
				}
			}
		})
	return nil, failed
}

func (f *franz) committed(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	member := f.members[a.Name]
	found, err := kadm.NewClient(member.client).FetchOffsets(ctx, member.group)
	if err != nil {
		return nil, err
	}
	rows := []place{}
	for _, p := range a.places() {
		row := place{topic: p.topic, partition: p.partition, offset: -1}
		if o, ok := found.Lookup(p.topic, p.partition); ok {
			row.offset, row.metadata = o.At, o.Metadata
		}
		rows = append(rows, row)
	}
	return answer{"offsets": rows}, nil
}

func (f *franz) seek(a arguments) (answer, error) {
	member := f.members[a.Name]
	member.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{a.Topic: {a.Partition: {Epoch: -1, Offset: a.Offset}}})
	member.store.drop(func(r record) bool { return r.Topic != a.Topic || *r.Partition != a.Partition })
	return nil, nil
}

func (f *franz) offsetsForTimes(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	found, err := kadm.NewClient(f.members[a.Name].client).ListOffsetsAfterMilli(ctx, a.Timestamp, a.Topic)
	if err != nil {
		return nil, err
	}
	row, _ := found.Lookup(a.Topic, a.Partition)
	return answer{"offset": row.Offset}, row.Err
}

func (f *franz) consumerClose(a arguments) (answer, error) {
	member := f.members[a.Name]
	delete(f.members, a.Name)
	member.stop()
	<-member.done
	member.client.CloseAllowingRebalance()
	member.work.note("E")
	return nil, nil
}

func (f *franz) reset(arguments) (answer, error) {
	for name := range f.members {
		_, _ = f.consumerClose(arguments{Name: name})
	}
	for name := range f.producers {
		_, _ = f.producerClose(arguments{Name: name})
	}
	for address, client := range f.admins {
		client.Close()
		delete(f.admins, address)
	}
	return nil, nil
}
