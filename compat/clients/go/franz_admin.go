package main

import (
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The admin operations of franz-go.

func (f *franz) admin(bootstrap string) (*kadm.Client, error) {
	if f.admins[bootstrap] == nil {
		client, err := kgo.NewClient(quick(bootstrap)...)
		if err != nil {
			return nil, err
		}
		f.admins[bootstrap] = client
	}
	return kadm.NewClient(f.admins[bootstrap]), nil
}

func (f *franz) metadata(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	brokers, topics := [][]any{}, map[string]int{}
	for _, b := range found.Brokers {
		brokers = append(brokers, []any{b.NodeID, b.Host, b.Port})
	}
	for name, topic := range found.Topics {
		topics[name] = len(topic.Partitions)
	}
	return answer{"brokers": brokers, "topics": topics}, nil
}

func (f *franz) createTopic(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	configs := map[string]*string{}
	for key, value := range a.Configs {
		configs[key] = pointer(value)
	}
	make := admin.CreateTopics
	if a.ValidateOnly {
		make = admin.ValidateCreateTopics
	}
	found, err := make(ctx, int32(a.count()), 1, configs, a.Topic)
	if err != nil {
		return nil, err
	}
	return nil, found.Error()
}

func (f *franz) deleteTopic(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.DeleteTopic(ctx, a.Topic)
	if err != nil {
		return nil, err
	}
	return nil, found.Err
}

func (f *franz) addPartitions(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.UpdatePartitions(ctx, a.count(), a.Topic)
	if err != nil {
		return nil, err
	}
	return nil, found.Error()
}

func (f *franz) topicConfigs(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.DescribeTopicConfigs(ctx, a.Topic)
	if err != nil {
		return nil, err
	}
	configs := map[string]*string{}
	for _, row := range found[0].Configs {
		configs[row.Key] = row.Value
	}
	return answer{"configs": configs}, found[0].Err
}

func (f *franz) setTopicConfig(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: a.Key, Value: &a.Value}}, a.Topic)
	if err != nil {
		return nil, err
	}
	return nil, found[0].Err
}

func (f *franz) listGroups(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	groups := map[string]string{}
	for name, row := range found {
		groups[name] = row.State
	}
	return answer{"groups": groups}, nil
}

func (f *franz) describeGroup(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.DescribeGroups(ctx, a.Group)
	if err != nil {
		return nil, err
	}
	group := found[a.Group]
	members := [][][]any{}
	for _, member := range group.Members {
		rows := [][]any{}
		if plan, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range plan.Topics {
				for _, partition := range topic.Partitions {
					rows = append(rows, []any{topic.Topic, partition})
				}
			}
		}
		members = append(members, rows)
	}
	return answer{"state": group.State, "members": members}, group.Err
}

func (f *franz) deleteGroup(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	found, err := admin.DeleteGroup(ctx, a.Group)
	if err != nil {
		return nil, err
	}
	return nil, found.Err
}

func (f *franz) deleteRecords(a arguments) (answer, error) {
	ctx, cancel := within(20)
	defer cancel()
	admin, err := f.admin(a.Bootstrap)
	if err != nil {
		return nil, err
	}
	var offsets kadm.Offsets
	offsets.AddOffset(a.Topic, a.Partition, a.Offset, -1)
	found, err := admin.DeleteRecords(ctx, offsets)
	if err != nil {
		return nil, err
	}
	row, _ := found.Lookup(a.Topic, a.Partition)
	return answer{"low": row.LowWatermark}, row.Err
}
