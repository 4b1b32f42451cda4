package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// What web interfaces that are built on franz-go ask for (Redpanda Console), one operation for each of their pages. A call that
// fails fails the page, but on the page about security, where interfaces show what the broker refuses.

// page opens the admin client for one page.
func (f *franz) page(show func(context.Context, *kadm.Client, arguments) (answer, error)) func(arguments) (answer, error) {
	return func(a arguments) (answer, error) {
		ctx, cancel := within(20)
		defer cancel()
		admin, err := f.admin(a.Bootstrap)
		if err != nil {
			return nil, err
		}
		return show(ctx, admin, a)
	}
}

// consoleKeys are the requests without which Redpanda Console hides a page: settings, groups, records, offsets, reassignments,
// quotas, users.
var consoleKeys = []int16{32, 15, 16, 21, 8, 42, 47, 46, 44, 45, 48, 50, 51}

func uiCluster(ctx context.Context, admin *kadm.Client, _ arguments) (answer, error) {
	versions, versionsErr := admin.ApiVersions(ctx)
	found, foundErr := admin.Metadata(ctx)
	described, configsErr := admin.DescribeBrokerConfigs(ctx, found.Brokers.NodeIDs()...)
	folders, logsErr := admin.DescribeAllLogDirs(ctx, nil)
	if err := errors.Join(versionsErr, foundErr, configsErr, logsErr); err != nil {
		return nil, err
	}
	said := answer{"id": found.Cluster, "controller": found.Controller}
	nodes := []int32{}
	for _, broker := range found.Brokers {
		nodes = append(nodes, broker.NodeID)
		one := versions[broker.NodeID]
		if one.Err != nil {
			return nil, one.Err
		}
		hidden := []int16{}
		for _, key := range consoleKeys {
			if _, served := one.KeyMaxVersion(key); !served {
				hidden = append(hidden, key)
			}
		}
		said["version"], said["hidden"] = one.VersionGuess(), hidden
	}
	configs := map[string]*string{}
	for _, resource := range described {
		if resource.Err != nil {
			return nil, resource.Err
		}
		for _, row := range resource.Configs {
			configs[row.Key] = row.Value
		}
	}
	logs := [][]any{}
	for _, perBroker := range folders {
		for _, folder := range perBroker {
			if folder.Err != nil {
				return nil, folder.Err
			}
			for topic, partitions := range folder.Topics {
				for partition, log := range partitions {
					logs = append(logs, []any{topic, partition, log.Size})
				}
			}
		}
	}
	said["nodes"], said["configs"], said["logs"] = nodes, configs, logs
	return said, nil
}

func uiTopics(ctx context.Context, admin *kadm.Client, _ arguments) (answer, error) {
	topics, err := admin.ListTopicsWithInternal(ctx)
	if err != nil {
		return nil, err
	}
	names := topics.Names()
	described, configsErr := admin.DescribeTopicConfigs(ctx, names...)
	starts, startsErr := admin.ListStartOffsets(ctx, names...)
	ends, endsErr := admin.ListEndOffsets(ctx, names...)
	newest, newestErr := admin.ListMaxTimestampOffsets(ctx, names...)
	err = errors.Join(topics.Error(), configsErr, startsErr, endsErr, newestErr, starts.Error(), ends.Error(), newest.Error())
	if err != nil {
		return nil, err
	}
	configs := map[string]map[string][]any{}
	for _, resource := range described {
		if resource.Err != nil {
			return nil, resource.Err
		}
		rows := map[string][]any{}
		for _, row := range resource.Configs {
			rows[row.Key] = []any{row.Value, row.Source.String(), nil}
		}
		configs[resource.Name] = rows
	}
	said := answer{}
	for name, topic := range topics {
		partitions := []answer{}
		for _, row := range topic.Partitions.Sorted() {
			at := func(offsets kadm.ListedOffsets) int64 {
				found, ok := offsets.Lookup(name, row.Partition)
				if !ok {
					return -2
				}
				return found.Offset
			}
			partitions = append(partitions, answer{
				"leader": row.Leader, "replicas": len(row.Replicas), "in_sync": len(row.ISR),
				"start": at(starts), "end": at(ends), "newest": at(newest),
			})
		}
		said[name] = answer{"internal": topic.IsInternal, "configs": configs[name], "partitions": partitions}
	}
	return said, nil
}

func uiGroups(ctx context.Context, admin *kadm.Client, _ arguments) (answer, error) {
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	names := listed.Groups()
	described, err := admin.DescribeGroups(ctx, names...)
	if err != nil {
		return nil, err
	}
	committed := admin.FetchManyOffsets(ctx, names...)
	if err := errors.Join(described.Error(), committed.Error()); err != nil {
		return nil, err
	}
	said := answer{}
	for name, group := range described {
		members := []answer{}
		for _, member := range group.Members {
			assigned := [][]any{}
			plan, ok := member.Assigned.AsConsumer()
			if !ok {
				return nil, fmt.Errorf("the assignment of %s in %s cannot be read", member.ClientID, name)
			}
			for _, topic := range plan.Topics {
				for _, partition := range topic.Partitions {
					assigned = append(assigned, []any{topic.Topic, partition})
				}
			}
			members = append(members, answer{
				"id": member.MemberID, "client": member.ClientID, "host": member.ClientHost, "assigned": assigned,
			})
		}
		offsets := [][]any{}
		committed[name].Fetched.Each(func(row kadm.OffsetResponse) {
			offsets = append(offsets, []any{row.Topic, row.Partition, row.At})
		})
		said[name] = answer{
			"state": group.State, "assignor": group.Protocol, "coordinator": group.Coordinator.NodeID, "members": members,
			"committed": offsets,
		}
	}
	return said, nil
}

func uiSecurity(ctx context.Context, admin *kadm.Client, a arguments) (answer, error) {
	said := answer{}
	shown := func(name string, count int, err error) {
		var known *kerr.Error
		switch {
		case errors.As(err, &known):
			said[name] = known.Message
		case err != nil:
			said[name] = err.Error()
		default:
			said[name] = count
		}
	}
	everything := kadm.NewACLs().AnyResource().Topics().Groups().Clusters().TransactionalIDs().
		ResourcePatternType(kadm.ACLPatternAny).Operations().Allow().AllowHosts().Deny().DenyHosts()
	acls, err := admin.DescribeACLs(ctx, everything)
	for _, one := range acls {
		err = errors.Join(err, one.Err)
	}
	shown("acls", len(acls), err)
	users, err := admin.DescribeUserSCRAMs(ctx)
	shown("users", len(users), err)
	quotas, err := admin.DescribeClientQuotas(ctx, false, nil)
	shown("quotas", len(quotas), err)
	transactions, err := admin.ListTransactions(ctx, nil, nil)
	shown("transactions", len(transactions), err)
	moving, err := admin.ListPartitionReassignments(ctx, nil)
	shown("reassignments", len(moving), err)
	var first kadm.TopicsSet
	first.Add(a.Topic, 0)
	writers, err := admin.DescribeProducers(ctx, first)
	row := writers[a.Topic].Partitions[0]
	shown("producers", len(row.ActiveProducers), errors.Join(err, row.Err))
	return said, nil
}

func uiReset(ctx context.Context, admin *kadm.Client, a arguments) (answer, error) {
	var to kadm.Offsets
	to.AddOffset(a.Topic, a.Partition, a.Offset, -1)
	return nil, admin.CommitAllOffsets(ctx, a.Group, to)
}

func uiForget(ctx context.Context, admin *kadm.Client, a arguments) (answer, error) {
	var what kadm.TopicsSet
	what.Add(a.Topic, a.Partition)
	found, err := admin.DeleteOffsets(ctx, a.Group, what)
	if err != nil {
		return nil, err
	}
	return nil, found.Error()
}

func uiReassign(ctx context.Context, admin *kadm.Client, a arguments) (answer, error) {
	var wish kadm.AlterPartitionAssignmentsReq
	wish.Assign(a.Topic, a.Partition, []int32{a.Node})
	found, err := admin.AlterPartitionAssignments(ctx, wish)
	if err != nil {
		return nil, err
	}
	return nil, found.Error()
}

// uiReplaceConfigs sets all of a topic's settings in one, as before there was a way to change one of them.
func uiReplaceConfigs(ctx context.Context, admin *kadm.Client, a arguments) (answer, error) {
	found, err := admin.AlterTopicConfigsState(ctx, []kadm.AlterConfig{{Name: a.Key, Value: &a.Value}}, a.Topic)
	if err != nil {
		return nil, err
	}
	return nil, found[0].Err
}
