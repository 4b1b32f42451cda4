package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// saramaDriver drives sarama.
type saramaDriver struct {
	producers map[string]sarama.SyncProducer
	members   map[string]*saramaMember
	admins    map[string]sarama.ClusterAdmin
}

type saramaMember struct {
	client  sarama.Client
	group   sarama.ConsumerGroup
	name    string
	plain   sarama.Consumer
	store   *store
	work    *working
	stop    context.CancelFunc
	done    sync.WaitGroup
	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
	errs    chan error
}

func newSarama() library {
	sarama.Logger = log.New(os.Stderr, "sarama ", log.LstdFlags)
	return &saramaDriver{map[string]sarama.SyncProducer{}, map[string]*saramaMember{}, map[string]sarama.ClusterAdmin{}}
}

func (d *saramaDriver) version() string { return moduleVersion("github.com/IBM/sarama") }

func (d *saramaDriver) translate(err error) fault {
	var several sarama.ProducerErrors
	if errors.As(err, &several) && len(several) > 0 {
		err = several[0].Err
	}
	var code sarama.KError
	if errors.As(err, &code) {
		return kafkaFault(code.Error(), int(code), err.Error())
	}
	return fault{Name: "Error", Message: err.Error()}
}

func (d *saramaDriver) operations() map[string]func(arguments) (answer, error) {
	return map[string]func(arguments) (answer, error){
		"producer_open": d.producerOpen, "produce": d.produce, "producer_close": d.producerClose,
		"consumer_open": d.consumerOpen, "take": d.take, "commit": d.commit, "committed": d.committed,
		"offsets_for_times": d.offsetsForTimes, "consumer_close": d.consumerClose, "metadata": d.metadata,
		"create_topic": d.createTopic, "delete_topic": d.deleteTopic, "add_partitions": d.addPartitions,
		"topic_configs": d.topicConfigs, "set_topic_config": d.setTopicConfig, "list_groups": d.listGroups,
		"describe_group": d.describeGroup, "delete_group": d.deleteGroup, "delete_records": d.deleteRecords, "reset": d.reset,
	}
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.DefaultVersion
	config.Metadata.Retry.Max = 60
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 200 * time.Millisecond
	config.Consumer.Retry.Backoff = 200 * time.Millisecond
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Admin.Timeout = 15 * time.Second
	return config
}

func (d *saramaDriver) producerOpen(a arguments) (answer, error) {
	config := saramaConfig()
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Compression = map[string]sarama.CompressionCodec{
		"gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[a.Compression]
	config.Producer.Retry.Max = 100
	config.Producer.Retry.Backoff = 100 * time.Millisecond
	if a.Retries != nil {
		config.Producer.Retry.Max = *a.Retries
	}
	if a.MaxBytes > 0 {
		config.Producer.MaxMessageBytes = a.MaxBytes
	}
	if a.Idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer([]string{a.Bootstrap}, config)
	d.producers[a.Name] = producer
	return nil, err
}

// encoder keeps the difference between no bytes and null.
func encoder(data []byte) sarama.Encoder {
	if data == nil {
		return nil
	}
	return sarama.ByteEncoder(data)
}

func (d *saramaDriver) produce(a arguments) (answer, error) {
	messages := make([]*sarama.ProducerMessage, len(a.Records))
	for i, r := range a.Records {
		messages[i] = &sarama.ProducerMessage{Topic: a.Topic, Key: encoder(r.Key), Value: encoder(r.Value)}
		if r.Partition != nil {
			messages[i].Partition = *r.Partition
		}
		if r.Timestamp != nil {
			messages[i].Timestamp = time.UnixMilli(*r.Timestamp)
		}
		for _, h := range r.Headers {
			messages[i].Headers = append(messages[i].Headers, sarama.RecordHeader{Key: []byte(h.name), Value: h.value})
		}
	}
	if err := d.producers[a.Name].SendMessages(messages); err != nil {
		return nil, err
	}
	rows := make([][]int64, len(messages))
	for i, m := range messages {
		rows[i] = []int64{int64(m.Partition), m.Offset}
	}
	return answer{"results": rows}, nil
}

func (d *saramaDriver) producerClose(a arguments) (answer, error) {
	producer := d.producers[a.Name]
	delete(d.producers, a.Name)
	return nil, producer.Close()
}

func (d *saramaDriver) consumerOpen(a arguments) (answer, error) {
	config := saramaConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	if a.Reset == "latest" {
		config.Consumer.Offsets.Initial = sarama.OffsetNewest
	}
	config.Consumer.Group.Session.Timeout = a.sessionTimeout()
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.Rebalance.Timeout = 10 * time.Second
	config.Consumer.Group.Rebalance.Retry.Max = 100
	config.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	config.Consumer.Group.InstanceId = a.Instance
	strategy := map[string]sarama.BalanceStrategy{
		"roundrobin": sarama.NewBalanceStrategyRoundRobin(), "sticky": sarama.NewBalanceStrategySticky(),
	}[a.Assignor]
	if strategy == nil {
		strategy = sarama.NewBalanceStrategyRange()
	}
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	config.Metadata.AllowAutoTopicCreation = a.AutoCreate
	if a.RefreshMs > 0 {
		config.Metadata.RefreshFrequency = time.Duration(a.RefreshMs) * time.Millisecond
	}
	if a.FetchBytes > 0 {
		config.Consumer.Fetch.Default = int32(a.FetchBytes)
	}
	if a.ClientID != "" {
		config.ClientID = a.ClientID
	}
	if a.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	client, err := sarama.NewClient([]string{a.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	member := &saramaMember{client: client, name: a.Group, store: newStore(), work: a.Work, stop: stop, errs: make(chan error, 100)}
	d.members[a.Name] = member
	if a.Group == "" {
		return nil, member.readPartitions(a, ctx)
	}
	if member.group, err = sarama.NewConsumerGroupFromClient(a.Group, client); err != nil {
		return nil, err
	}
	member.done.Add(2)
	go member.watch()
	go func() {
		defer member.done.Done()
		for ctx.Err() == nil {
			if err := member.group.Consume(ctx, a.Topics, member); err != nil && ctx.Err() == nil {
				log.Println("consume:", err)
				member.work.note("F", "consume", err)
				member.store.fail(err)
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		}
	}()
	return nil, nil
}

func (m *saramaMember) readPartitions(a arguments, ctx context.Context) error {
	plain, err := sarama.NewConsumerFromClient(m.client)
	if err != nil {
		return err
	}
	m.plain = plain
	for _, p := range a.Assign {
		reader, err := plain.ConsumePartition(p.topic, p.partition, p.offset)
		if err != nil {
			return err
		}
		m.store.give(map[string][]int32{p.topic: {p.partition}})
		m.done.Add(1)
		go func() {
			defer m.done.Done()
			defer reader.Close()
			for {
				select {
				case message := <-reader.Messages():
					m.got(message)
				case err := <-reader.Errors():
					log.Println("reader:", err)
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return nil
}

func (m *saramaMember) watch() {
	defer m.done.Done()
	for err := range m.group.Errors() {
		log.Println("group:", err)
		m.work.note("F", "group", err)
		select {
		case m.errs <- err:
		default:
		}
	}
}

func (m *saramaMember) got(message *sarama.ConsumerMessage) {
	row := record{Topic: message.Topic, Partition: pointer(message.Partition), Offset: message.Offset, Key: message.Key,
		Value: message.Value, Timestamp: pointer(message.Timestamp.UnixMilli())}
	for _, h := range message.Headers {
		row.Headers = append(row.Headers, header{string(h.Key), h.Value})
	}
	m.store.add(row)
}

// Setup, Cleanup and ConsumeClaim are what sarama calls in a session of the group.

func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	m.session = session
	m.mutex.Unlock()
	m.store.give(session.Claims())
	return nil
}

func (m *saramaMember) Cleanup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	m.session = nil
	m.mutex.Unlock()
	m.store.revoke(session.Claims())
	if len(session.Claims()) > 0 {
		m.work.note("V")
	}
	return nil
}

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	if m.work != nil {
		return m.workOn(session, claim)
	}
	for {
		select {
		case message, more := <-claim.Messages():
			if !more {
				return nil
			}
			m.got(message)
		case <-session.Context().Done():
			return nil
		}
	}
}

// workOn works on what a claim brings, in parts of what is there.
func (m *saramaMember) workOn(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	var messages []*sarama.ConsumerMessage
	finish := func() {
		items := make([]item, len(messages))
		for i, message := range messages {
			items[i] = item{message.Partition, message.Offset, message.Value}
		}
		m.work.on(items, func(map[int32]int64) error {
			// Moves forwards only; a slice has larger offsets than the one before.
			session.MarkMessage(messages[len(messages)-1], "")
			session.Commit()
			return errUnanswered
		})
		messages = nil
	}
	for session.Context().Err() == nil {
		select {
		case message, more := <-claim.Messages():
			if !more {
				return nil
			}
			if messages = append(messages, message); len(messages) >= m.work.Batch || len(claim.Messages()) == 0 {
				finish()
			}
		case <-session.Context().Done():
		}
	}
	return nil
}

func (d *saramaDriver) take(a arguments) (answer, error) {
	return d.members[a.Name].store.take(a, d.translate), nil
}

func (d *saramaDriver) commit(a arguments) (answer, error) {
	member := d.members[a.Name]
	member.mutex.Lock()
	session := member.session
	member.mutex.Unlock()
	if session == nil {
		return nil, sarama.ErrRebalanceInProgress
	}
	for len(member.errs) > 0 {
		<-member.errs
	}
	wait := 20 * time.Millisecond
	for _, p := range a.Offsets {
		// The first goes forwards only, the second backwards only.
		session.MarkOffset(p.topic, p.partition, p.offset, p.metadata)
		session.ResetOffset(p.topic, p.partition, p.offset, p.metadata)
		if p.metadata != "" {
			wait = 500 * time.Millisecond
		}
	}
	session.Commit()
	// What goes wrong in a commit comes out of the channel of errors.
	select {
	case err := <-member.errs:
		return nil, err
	case <-time.After(wait):
		return nil, nil
	}
}

func (d *saramaDriver) committed(a arguments) (answer, error) {
	member := d.members[a.Name]
	admin, err := sarama.NewClusterAdminFromClient(member.client)
	if err != nil {
		return nil, err
	}
	asked := map[string][]int32{}
	for _, p := range a.places() {
		asked[p.topic] = append(asked[p.topic], p.partition)
	}
	found, err := admin.ListConsumerGroupOffsets(member.name, asked)
	if err != nil {
		return nil, err
	}
	rows := []place{}
	for _, p := range a.places() {
		row := place{topic: p.topic, partition: p.partition, offset: -1}
		if block := found.GetBlock(p.topic, p.partition); block != nil {
			row.offset, row.metadata = block.Offset, block.Metadata
		}
		rows = append(rows, row)
	}
	return answer{"offsets": rows}, nil
}

func (d *saramaDriver) offsetsForTimes(a arguments) (answer, error) {
	offset, err := d.members[a.Name].client.GetOffset(a.Topic, a.Partition, a.Timestamp)
	return answer{"offset": offset}, err
}

func (d *saramaDriver) consumerClose(a arguments) (answer, error) {
	member := d.members[a.Name]
	delete(d.members, a.Name)
	member.stop()
	var failed error
	if member.group != nil {
		failed = member.group.Close()
	}
	member.done.Wait()
	if member.plain != nil {
		failed = member.plain.Close()
	}
	if err := member.client.Close(); err != nil && !errors.Is(err, sarama.ErrClosedClient) {
		failed = err
	}
	if errors.Is(failed, io.EOF) {
		failed = nil
	}
	member.work.note("E")
	return nil, failed
}

func (d *saramaDriver) reset(arguments) (answer, error) {
	for name := range d.members {
		_, _ = d.consumerClose(arguments{Name: name})
	}
	for name := range d.producers {
		_, _ = d.producerClose(arguments{Name: name})
	}
	for address, admin := range d.admins {
		_ = admin.Close()
		delete(d.admins, address)
	}
	return nil, nil
}
