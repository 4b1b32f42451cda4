package main

import (
	"context"
	"errors"
	"log"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// segmentio drives kafka-go. Its group reader does not show what it was assigned, so the driver uses the group type below it
// and a plain reader for each partition, as that reader itself does.
type segmentio struct {
	producers map[string]*kafka.Writer
	members   map[string]*segmentioMember
}

type segmentioMember struct {
	address    string
	name       string
	store      *store
	stop       context.CancelFunc
	done       sync.WaitGroup
	mutex      sync.Mutex
	generation *kafka.Generation
	readers    map[place]*kafka.Reader
	options    arguments
	group      *kafka.ConsumerGroup
}

func newSegmentio() library {
	return &segmentio{map[string]*kafka.Writer{}, map[string]*segmentioMember{}}
}

func splitAddress(address string) (string, int) {
	host, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	return host, port
}

func (s *segmentio) version() string { return moduleVersion("github.com/segmentio/kafka-go") }

func (s *segmentio) translate(err error) fault {
	var several kafka.WriteErrors
	if errors.As(err, &several) {
		for _, one := range several {
			if one != nil {
				err = one
				break
			}
		}
	}
	var code kafka.Error
	if errors.As(err, &code) {
		return kafkaFault(code.Title(), int(code), err.Error())
	}
	return fault{Name: "Error", Message: err.Error()}
}

func (s *segmentio) operations() map[string]func(arguments) (answer, error) {
	return map[string]func(arguments) (answer, error){
		"producer_open": s.producerOpen, "produce": s.produce, "producer_close": s.producerClose,
		"consumer_open": s.consumerOpen, "take": s.take, "commit": s.commit, "committed": s.committed, "seek": s.seek,
		"offsets_for_times": s.offsetsForTimes, "consumer_close": s.consumerClose, "metadata": s.metadata,
		"create_topic": s.createTopic, "delete_topic": s.deleteTopic, "add_partitions": s.addPartitions,
		"topic_configs": s.topicConfigs, "set_topic_config": s.setTopicConfig, "list_groups": s.listGroups,
		"describe_group": s.describeGroup, "delete_group": s.deleteGroup, "reset": s.reset,
	}
}

// asked gives each message the partition that the scenario wants; it travels in the message's own field for such data.
func asked(message kafka.Message, _ ...int) int { return message.WriterData.(*request).partition }

// request is what the driver wants to know about a message, and learns.
type request struct {
	partition int
	offset    int64
}

func (s *segmentio) producerOpen(a arguments) (answer, error) {
	attempts := 100
	if a.Retries != nil {
		attempts = *a.Retries + 1
	}
	size := 1 << 20
	if a.MaxBytes > 0 {
		size = a.MaxBytes
	}
	s.producers[a.Name] = &kafka.Writer{
		Addr: kafka.TCP(a.Bootstrap), Balancer: kafka.BalancerFunc(asked), MaxAttempts: attempts,
		WriteBackoffMin: 50 * time.Millisecond, WriteBackoffMax: 300 * time.Millisecond, BatchTimeout: 5 * time.Millisecond,
		BatchBytes: int64(size), RequiredAcks: kafka.RequireAll, AllowAutoTopicCreation: true,
		Compression: map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}[a.Compression],
		Completion: func(messages []kafka.Message, err error) {
			for _, message := range messages {
				if err == nil {
					message.WriterData.(*request).offset = message.Offset
				}
			}
		},
	}
	return nil, nil
}

func (s *segmentio) produce(a arguments) (answer, error) {
	ctx, cancel := within(80)
	defer cancel()
	requests := make([]*request, len(a.Records))
	messages := make([]kafka.Message, len(a.Records))
	for i, r := range a.Records {
		requests[i] = &request{offset: -1}
		if r.Partition != nil {
			requests[i].partition = int(*r.Partition)
		}
		messages[i] = kafka.Message{Topic: a.Topic, Key: r.Key, Value: r.Value, WriterData: requests[i]}
		if r.Timestamp != nil {
			messages[i].Time = time.UnixMilli(*r.Timestamp)
		}
		for _, h := range r.Headers {
			messages[i].Headers = append(messages[i].Headers, kafka.Header{Key: h.name, Value: h.value})
		}
	}
	if err := s.producers[a.Name].WriteMessages(ctx, messages...); err != nil {
		return nil, err
	}
	rows := make([][]int64, len(requests))
	for i, r := range requests {
		rows[i] = []int64{int64(r.partition), r.offset}
	}
	return answer{"results": rows}, nil
}

func (s *segmentio) producerClose(a arguments) (answer, error) {
	producer := s.producers[a.Name]
	delete(s.producers, a.Name)
	return nil, producer.Close()
}

func (s *segmentio) consumerOpen(a arguments) (answer, error) {
	ctx, stop := context.WithCancel(context.Background())
	member := &segmentioMember{address: a.Bootstrap, name: a.Group, store: newStore(), stop: stop, readers: map[place]*kafka.Reader{}, options: a}
	s.members[a.Name] = member
	if a.Group == "" {
		for _, p := range a.Assign {
			member.store.give(map[string][]int32{p.topic: {p.partition}})
			member.done.Add(1)
			go func() {
				defer member.done.Done()
				member.read(ctx, p.topic, p.partition, p.offset)
			}()
		}
		return nil, nil
	}
	balancer := map[string]kafka.GroupBalancer{"roundrobin": kafka.RoundRobinGroupBalancer{}}[a.Assignor]
	if balancer == nil {
		balancer = kafka.RangeGroupBalancer{}
	}
	start := kafka.FirstOffset
	if a.Reset == "latest" {
		start = kafka.LastOffset
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: a.Group, Brokers: []string{a.Bootstrap}, Topics: a.Topics, GroupBalancers: []kafka.GroupBalancer{balancer},
		HeartbeatInterval: 500 * time.Millisecond, SessionTimeout: a.sessionTimeout(), RebalanceTimeout: 10 * time.Second,
		JoinGroupBackoff: 200 * time.Millisecond, StartOffset: start, ErrorLogger: log.Default(),
	})
	if err != nil {
		return nil, err
	}
	member.group = group
	member.done.Add(1)
	go func() {
		defer member.done.Done()
		for ctx.Err() == nil {
			generation, err := group.Next(ctx)
			if err != nil {
				if ctx.Err() == nil && !errors.Is(err, kafka.ErrGroupClosed) {
					log.Println("next:", err)
				}
				continue
			}
			member.live(generation)
		}
	}()
	return nil, nil
}

// live starts a reader for each partition of a generation.
func (m *segmentioMember) live(generation *kafka.Generation) {
	claims := map[string][]int32{}
	for topic, list := range generation.Assignments {
		for _, p := range list {
			claims[topic] = append(claims[topic], int32(p.ID))
		}
	}
	m.mutex.Lock()
	m.generation = generation
	m.mutex.Unlock()
	m.store.give(claims)
	generation.Start(func(ctx context.Context) {
		<-ctx.Done()
		if len(claims) > 0 {
			m.options.Work.note("V")
		}
		m.mutex.Lock()
		if m.generation == generation {
			m.generation = nil
		}
		m.mutex.Unlock()
		m.store.revoke(claims)
	})
	for topic, list := range generation.Assignments {
		for _, p := range list {
			generation.Start(func(ctx context.Context) {
				if m.options.Work != nil {
					m.workOn(ctx, generation, topic, p.ID, p.Offset)
				} else {
					m.read(ctx, topic, int32(p.ID), p.Offset)
				}
			})
		}
	}
}

func (m *segmentioMember) reader(topic string, partition int32) *kafka.Reader {
	config := kafka.ReaderConfig{
		IsolationLevel: map[string]kafka.IsolationLevel{"read_committed": kafka.ReadCommitted}[m.options.Isolation],
		Brokers:        []string{m.address}, Topic: topic, Partition: int(partition), MaxWait: 200 * time.Millisecond,
		ReadBackoffMin: 20 * time.Millisecond, ReadBackoffMax: 200 * time.Millisecond, ErrorLogger: log.Default(),
	}
	if m.options.ClientID != "" {
		config.Dialer = &kafka.Dialer{ClientID: m.options.ClientID, Timeout: 10 * time.Second, DualStack: true}
	}
	if m.options.FetchBytes > 0 {
		config.MinBytes, config.MaxBytes = 1, m.options.FetchBytes
	}
	return kafka.NewReader(config)
}

// workOn works on what a partition brings, in parts of what is there, as long as the generation lives.
func (m *segmentioMember) workOn(ctx context.Context, generation *kafka.Generation, topic string, partition int, offset int64) {
	work := m.options.Work
	reader := m.reader(topic, int32(partition))
	defer reader.Close()
	if err := reader.SetOffset(offset); err != nil {
		work.note("F", "offset", err)
	}
	var items []item
	for ctx.Err() == nil {
		moment, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		message, err := reader.FetchMessage(moment)
		cancel()
		if err == nil {
			items = append(items, item{int32(partition), message.Offset, message.Value})
		} else if moment.Err() == nil {
			work.note("F", "fetch", err)
			return
		}
		if len(items) >= work.Batch || err != nil {
			work.on(items, func(next map[int32]int64) error {
				return generation.CommitOffsets(map[string]map[int]int64{topic: {partition: next[int32(partition)]}})
			})
			items = nil
		}
	}
}

func (m *segmentioMember) read(ctx context.Context, topic string, partition int32, offset int64) {
	reader := m.reader(topic, partition)
	defer reader.Close()
	if err := reader.SetOffset(offset); err != nil {
		m.store.fail(err)
	}
	here := place{topic: topic, partition: partition}
	m.mutex.Lock()
	m.readers[here] = reader
	m.mutex.Unlock()
	for {
		message, err := reader.FetchMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.store.fail(err)
			return
		}
		row := record{Topic: topic, Partition: pointer(partition), Offset: message.Offset, Key: message.Key, Value: message.Value,
			Timestamp: pointer(message.Time.UnixMilli())}
		for _, h := range message.Headers {
			row.Headers = append(row.Headers, header{h.Key, h.Value})
		}
		m.store.add(row)
	}
}

func (s *segmentio) take(a arguments) (answer, error) {
	return s.members[a.Name].store.take(a, s.translate), nil
}

func (s *segmentio) commit(a arguments) (answer, error) {
	member := s.members[a.Name]
	member.mutex.Lock()
	generation := member.generation
	member.mutex.Unlock()
	if generation == nil {
		return nil, kafka.RebalanceInProgress
	}
	offsets := map[string]map[int]int64{}
	for _, p := range a.Offsets {
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int]int64{}
		}
		offsets[p.topic][int(p.partition)] = p.offset
	}
	return nil, generation.CommitOffsets(offsets)
}

func (s *segmentio) seek(a arguments) (answer, error) {
	member := s.members[a.Name]
	here := place{topic: a.Topic, partition: a.Partition}
	deadline := time.Now().Add(15 * time.Second)
	for {
		member.mutex.Lock()
		reader := member.readers[here]
		member.mutex.Unlock()
		if reader != nil {
			err := reader.SetOffset(a.Offset)
			member.store.drop(func(r record) bool { return r.Topic != a.Topic || *r.Partition != a.Partition })
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, errors.New("the partition is not assigned")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *segmentio) consumerClose(a arguments) (answer, error) {
	member := s.members[a.Name]
	delete(s.members, a.Name)
	member.stop()
	var failed error
	if member.group != nil {
		failed = member.group.Close()
	}
	member.done.Wait()
	member.options.Work.note("E")
	return nil, failed
}

func (s *segmentio) reset(arguments) (answer, error) {
	for name := range s.members {
		_, _ = s.consumerClose(arguments{Name: name})
	}
	for name := range s.producers {
		_, _ = s.producerClose(arguments{Name: name})
	}
	return nil, nil
}
