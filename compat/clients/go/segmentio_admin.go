package main

import (
	"time"

	"github.com/segmentio/kafka-go"
)

// The admin operations of kafka-go.

func segmentioClient(bootstrap string) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: 15 * time.Second}
}

func (s *segmentio) committed(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	member := s.members[a.Name]
	asked := map[string][]int{}
	for _, p := range a.places() {
		asked[p.topic] = append(asked[p.topic], int(p.partition))
	}
	found, err := segmentioClient(member.address).OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: member.name, Topics: asked})
	if err != nil {
		return nil, err
	}
	rows := []place{}
	for _, p := range a.places() {
		row := place{topic: p.topic, partition: p.partition, offset: -1}
		for _, one := range found.Topics[p.topic] {
			if one.Partition == int(p.partition) {
				row.offset, row.metadata = one.CommittedOffset, one.Metadata
			}
		}
		rows = append(rows, row)
	}
	return answer{"offsets": rows}, found.Error
}

func (s *segmentio) offsetsForTimes(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	asked := map[string][]kafka.OffsetRequest{a.Topic: {kafka.TimeOffsetOf(int(a.Partition), time.UnixMilli(a.Timestamp))}}
	found, err := segmentioClient(s.members[a.Name].address).ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: asked})
	if err != nil {
		return nil, err
	}
	row := found.Topics[a.Topic][0]
	for offset := range row.Offsets {
		return answer{"offset": offset}, row.Error
	}
	return answer{"offset": -1}, row.Error
}

func (s *segmentio) metadata(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	found, err := segmentioClient(a.Bootstrap).Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	brokers, topics := [][]any{}, map[string]int{}
	for _, b := range found.Brokers {
		brokers = append(brokers, []any{b.ID, b.Host, b.Port})
	}
	for _, topic := range found.Topics {
		topics[topic.Name] = len(topic.Partitions)
	}
	return answer{"brokers": brokers, "topics": topics}, nil
}

func (s *segmentio) createTopic(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	topic := kafka.TopicConfig{Topic: a.Topic, NumPartitions: a.count(), ReplicationFactor: 1}
	for key, value := range a.Configs {
		topic.ConfigEntries = append(topic.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: value})
	}
	request := &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}, ValidateOnly: a.ValidateOnly}
	found, err := segmentioClient(a.Bootstrap).CreateTopics(ctx, request)
	if err != nil {
		return nil, err
	}
	return nil, found.Errors[a.Topic]
}

func (s *segmentio) deleteTopic(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	found, err := segmentioClient(a.Bootstrap).DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{a.Topic}})
	if err != nil {
		return nil, err
	}
	return nil, found.Errors[a.Topic]
}

func (s *segmentio) addPartitions(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	request := &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: a.Topic, Count: int32(a.count())}}}
	found, err := segmentioClient(a.Bootstrap).CreatePartitions(ctx, request)
	if err != nil {
		return nil, err
	}
	return nil, found.Errors[a.Topic]
}

func (s *segmentio) topicConfigs(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	request := &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: a.Topic},
	}}
	found, err := segmentioClient(a.Bootstrap).DescribeConfigs(ctx, request)
	if err != nil {
		return nil, err
	}
	configs := map[string]string{}
	for _, row := range found.Resources[0].ConfigEntries {
		configs[row.ConfigName] = row.ConfigValue
	}
	return answer{"configs": configs}, found.Resources[0].Error
}

func (s *segmentio) setTopicConfig(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	request := &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: a.Topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: a.Key, Value: a.Value, ConfigOperation: kafka.ConfigOperationSet}},
	}}}
	found, err := segmentioClient(a.Bootstrap).IncrementalAlterConfigs(ctx, request)
	if err != nil {
		return nil, err
	}
	return nil, found.Resources[0].Error
}

func (s *segmentio) listGroups(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	found, err := segmentioClient(a.Bootstrap).ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	groups := map[string]string{}
	for _, row := range found.Groups {
		groups[row.GroupID] = row.ProtocolType
	}
	return answer{"groups": groups}, found.Error
}

func (s *segmentio) describeGroup(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	found, err := segmentioClient(a.Bootstrap).DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{a.Group}})
	if err != nil {
		return nil, err
	}
	group := found.Groups[0]
	members := [][][]any{}
	for _, member := range group.Members {
		rows := [][]any{}
		for _, topic := range member.MemberAssignments.Topics {
			for _, partition := range topic.Partitions {
				rows = append(rows, []any{topic.Topic, partition})
			}
		}
		members = append(members, rows)
	}
	return answer{"state": group.GroupState, "members": members}, group.Error
}

func (s *segmentio) deleteGroup(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	found, err := segmentioClient(a.Bootstrap).DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{a.Group}})
	if err != nil {
		return nil, err
	}
	return nil, found.Errors[a.Group]
}
