package main

import "github.com/IBM/sarama"

// The admin operations of sarama.

func (d *saramaDriver) admin(bootstrap string) (sarama.ClusterAdmin, error) {
	if d.admins[bootstrap] == nil {
		admin, err := sarama.NewClusterAdmin([]string{bootstrap}, saramaConfig())
		if err != nil {
			return nil, err
		}
		d.admins[bootstrap] = admin
	}
	return d.admins[bootstrap], nil
}

func (d *saramaDriver) metadata(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, _, err := admin.DescribeCluster()
	if err != nil {
		return nil, err
	}
	// DescribeCluster hands out addresses as one text.
	brokers := [][]any{}
	for _, b := range found {
		host, port := splitAddress(b.Addr())
		brokers = append(brokers, []any{b.ID(), host, port})
	}
	listed, err := admin.ListTopics()
	if err != nil {
		return nil, err
	}
	topics := map[string]int32{}
	for name, topic := range listed {
		topics[name] = topic.NumPartitions
	}
	return answer{"brokers": brokers, "topics": topics}, nil
}

func (d *saramaDriver) createTopic(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	detail := &sarama.TopicDetail{NumPartitions: int32(a.count()), ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for key, value := range a.Configs {
		detail.ConfigEntries[key] = pointer(value)
	}
	return nil, admin.CreateTopic(a.Topic, detail, a.ValidateOnly)
}

func (d *saramaDriver) deleteTopic(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	return nil, admin.DeleteTopic(a.Topic)
}

func (d *saramaDriver) addPartitions(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	return nil, admin.CreatePartitions(a.Topic, int32(a.count()), nil, false)
}

func (d *saramaDriver) topicConfigs(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: a.Topic})
	if err != nil {
		return nil, err
	}
	configs := map[string]string{}
	for _, row := range found {
		configs[row.Name] = row.Value
	}
	return answer{"configs": configs}, nil
}

func (d *saramaDriver) setTopicConfig(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	entries := map[string]sarama.IncrementalAlterConfigsEntry{
		a.Key: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: pointer(a.Value)},
	}
	return nil, admin.IncrementalAlterConfig(sarama.TopicResource, a.Topic, entries, false)
}

func (d *saramaDriver) listGroups(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.ListConsumerGroups()
	return answer{"groups": found}, err
}

func (d *saramaDriver) describeGroup(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.DescribeConsumerGroups([]string{a.Group})
	if err != nil {
		return nil, err
	}
	members := [][][]any{}
	for _, member := range found[0].Members {
		plan, err := member.GetMemberAssignment()
		if err != nil {
			return nil, err
		}
		rows := [][]any{}
		if plan != nil {
			for topic, partitions := range plan.Topics {
				for _, partition := range partitions {
					rows = append(rows, []any{topic, partition})
				}
			}
		}
		members = append(members, rows)
	}
	return answer{"state": found[0].State, "members": members}, nil
}

func (d *saramaDriver) deleteGroup(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	return nil, admin.DeleteConsumerGroup(a.Group)
}

func (d *saramaDriver) deleteRecords(a arguments) (answer, error) {
	admin, err := d.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	if err := admin.DeleteRecords(a.Topic, map[int32]int64{a.Partition: a.Offset}); err != nil {
		return nil, err
	}
	found, err := admin.ListOffsets(map[string]map[int32]int64{a.Topic: {a.Partition: sarama.OffsetOldest}}, nil)
	if err != nil {
		return nil, err
	}
	return answer{"low": found[a.Topic][a.Partition].Offset}, nil
}
