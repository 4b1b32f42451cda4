// Driver for kafkajs.

import { createRequire } from 'node:module'
import { Store, OperationError, Work, findInside, pack, serve, unpack, until } from './base.mjs'

const require = createRequire(import.meta.url)
const kafkajs = require('kafkajs')
const wasm = require('@platformatic/wasm-utils')
const zstd = require('@mongodb-js/zstd')
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = kafkajs

// kafkajs brings gzip alone; the others are plugged in as its documentation says.
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: encoder => Promise.resolve(Buffer.from(wasm.snappyCompress(encoder.buffer))),
  decompress: data => {
    if (!data.subarray(0, 8).equals(XERIAL)) return Promise.resolve(Buffer.from(wasm.snappyDecompress(data)))
    const parts = []
    for (let at = 16; at < data.length;) {
      const size = data.readInt32BE(at)
      parts.push(Buffer.from(wasm.snappyDecompress(data.subarray(at + 4, at + 4 + size))))
      at += 4 + size
    }
    return Promise.resolve(Buffer.concat(parts))
  }
})
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => Promise.resolve(Buffer.from(wasm.lz4Compress(encoder.buffer))),
  decompress: data => Promise.resolve(Buffer.from(wasm.lz4Decompress(data)))
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: encoder => zstd.compress(encoder.buffer, 3),
  decompress: data => zstd.decompress(data)
})
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}

function translate (error) {
  const inner = findInside(error, e => (typeof e.code === 'number' && e.type ? new OperationError(e.type, e.code, e.message) : null))
  return inner ?? new OperationError(error.name ?? 'Error', null, String(error.message ?? error))
}

const client = (bootstrap, retries = 30, clientId = 'compat-kafkajs') =>
  new Kafka({
    clientId,
    brokers: [bootstrap],
    logLevel: logLevel.WARN,
    connectionTimeout: 5000,
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries }
  })

const producers = new Map()
const members = new Map()
let admin = null

async function adminOf (bootstrap) {
  if (admin?.bootstrap !== bootstrap) {
    await admin?.library.disconnect()
    admin = { bootstrap, library: client(bootstrap, 10).admin() }
    await admin.library.connect()
  }
  return admin.library
}

const resource = topic => ({ type: ConfigResourceTypes.TOPIC, name: topic })

// kafkajs hands several headers of one name out as a list.
const headersOf = headers =>
  Object.entries(headers ?? {}).flatMap(([name, value]) => (Array.isArray(value) ? value.map(v => [name, pack(v)]) : [[name, pack(value)]]))

const operations = {
  async producer_open ({ name, bootstrap, idempotent, compression, acks, retries, timeout_ms }) {
    const library = client(bootstrap, retries ?? 30).producer({
      idempotent: idempotent ?? false,
      maxInFlightRequests: idempotent ? 1 : undefined,
      retry: { initialRetryTime: 50, maxRetryTime: 500, retries: retries ?? 60 }
    })
    await library.connect()
    producers.set(name, { library, compression: CODECS[compression ?? 'none'], acks: acks ?? -1, timeout: timeout_ms ?? 30000 })
  },

  async produce ({ name, topic, records }) {
    const { library, compression, acks } = producers.get(name)
    const messages = records.map(record => {
      const headers = {}
      for (const [key, value] of record.headers) headers[key] = unpack(value)
      return {
        key: unpack(record.key),
        value: unpack(record.value),
        headers,
        partition: record.partition ?? undefined,
        timestamp: record.timestamp === null ? undefined : String(record.timestamp)
      }
    })
    const answered = await library.send({ topic, messages, acks, compression })
    const next = new Map(answered.map(row => [row.partition, Number(row.baseOffset)]))
    const results = records.map(record => {
      const partition = record.partition ?? answered[0].partition
      const offset = next.get(partition)
      next.set(partition, offset + 1)
      return [partition, offset]
    })
    return { results }
  },

  async producer_close ({ name }) {
    const producer = producers.get(name)
    producers.delete(name)
    await producer.library.disconnect()
  },

  async consumer_open ({ name, bootstrap, group, topics, reset, session_ms, fetch_bytes, auto_create, refresh_ms, client_id, isolation, work: working }) {
    const store = new Store()
    const work = working ? new Work(working) : null
    const kafka = client(bootstrap, 30, client_id)
    const library = kafka.consumer({
      groupId: group,
      sessionTimeout: session_ms ?? 6000,
      rebalanceTimeout: 10000,
      heartbeatInterval: 500,
      maxWaitTimeInMs: 200,
      maxBytesPerPartition: fetch_bytes ?? 1048576,
      maxBytes: fetch_bytes ?? 10485760,
      allowAutoTopicCreation: auto_create ?? false,
      readUncommitted: isolation !== 'read_committed',
      metadataMaxAge: refresh_ms ?? 300000,
      retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 60, restartOnFailure: async () => true }
    })
    const member = { library, store, group, bootstrap, work, joined: false }
    library.on(library.events.GROUP_JOIN, ({ payload }) => {
      const rows = Object.entries(payload.memberAssignment).flatMap(([topic, list]) => list.map(p => [topic, p]))
      store.drop()
      // It notices by a refused commit, too, that it is a member no more.
      if (member.id && member.id !== payload.memberId) work?.note('V')
      member.id = payload.memberId
      store.assignment = rows.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]))
      member.joined = true
    })
    library.on(library.events.REBALANCING, () => {
      store.drop()
      if (store.assignment.length > 0) work?.note('V')
      store.assignment = []
    })
    library.on(library.events.CRASH, ({ payload }) => {
      console.error('crash', payload.restart, payload.error)
      work?.note('F', 'crash', payload.error)
      // It starts again by itself after errors that pass.
      if (!payload.restart) store.fail(translate(payload.error))
    })
    await library.connect()
    await library.subscribe({ topics, fromBeginning: reset !== 'latest' })
    await library.run({
      autoCommit: false,
      eachBatchAutoResolve: !work,
      partitionsConsumedConcurrently: 4,
      eachBatch: async ({ batch, resolveOffset, heartbeat, isRunning, isStale }) => {
        for (let at = 0; work && at < batch.messages.length; at += work.batch) {
          if (!isRunning() || isStale()) return
          const part = batch.messages.slice(at, at + work.batch)
          const rows = part.map(({ offset, value }) => ({ partition: batch.partition, offset, value }))
          const { topic, partition } = batch
          const done = await work.on(rows, async next => {
            await library.commitOffsets([{ topic, partition, offset: String(next) }])
            // It says nothing about a commit that it left out.
            if (!isRunning()) throw new OperationError('STOPPING', null, 'the consumer is being closed')
          })
          if (done > 0) resolveOffset(part[done - 1].offset)
          if (done < part.length) throw new Error('the application cannot work on a record')
          await heartbeat()
        }
        if (work) return
        store.add(
          batch.messages.map(message => ({
            topic: batch.topic,
            partition: batch.partition,
            offset: Number(message.offset),
            key: pack(message.key),
            value: pack(message.value),
            headers: headersOf(message.headers),
            timestamp: Number(message.timestamp)
          }))
        )
      }
    })
    members.set(name, member)
  },

  take: ({ name, max, wait_ms }) => members.get(name).store.take(max, wait_ms),

  async commit ({ name, offsets }) {
    const rows = offsets.map(([topic, partition, offset, metadata]) => ({ topic, partition, offset: String(offset), metadata }))
    await members.get(name).library.commitOffsets(rows)
  },

  async committed ({ name, partitions }) {
    const { group, bootstrap } = members.get(name)
    const topics = [...new Set(partitions.map(pair => pair[0]))]
    const found = await (await adminOf(bootstrap)).fetchOffsets({ groupId: group, topics })
    const rows = found.flatMap(row => row.partitions.map(p => [row.topic, p.partition, Number(p.offset), p.metadata ?? '']))
    return { offsets: partitions.map(([t, p]) => rows.find(row => row[0] === t && row[1] === p) ?? [t, p, -1, '']) }
  },

  async offsets_for_times ({ name, topic, partition, timestamp }) {
    const found = await (await adminOf(members.get(name).bootstrap)).fetchTopicOffsetsByTimestamp(topic, timestamp)
    return { offset: Number(found.find(row => row.partition === partition).offset) }
  },

  async consumer_close ({ name }) {
    const member = members.get(name)
    members.delete(name)
    await member.library.disconnect()
    member.work?.note('E')
  },

  async metadata ({ bootstrap }) {
    const library = await adminOf(bootstrap)
    const cluster = await library.describeCluster()
    const { topics } = await library.fetchTopicMetadata()
    return {
      brokers: cluster.brokers.map(row => [row.nodeId, row.host, row.port]),
      topics: Object.fromEntries(topics.map(topic => [topic.name, topic.partitions.length]))
    }
  },

  async create_topic ({ bootstrap, topic, partitions, configs, validate_only }) {
    const configEntries = Object.entries(configs ?? {}).map(([name, value]) => ({ name, value }))
    const made = await (await adminOf(bootstrap)).createTopics({
      validateOnly: validate_only ?? false,
      // Waiting would look the topic up, which a request that makes none cannot end.
      waitForLeaders: !validate_only,
      topics: [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }]
    })
    // kafkajs turns "already exists" into false.
    if (!made) throw new OperationError('TOPIC_ALREADY_EXISTS', 36, 'the topic already exists')
  },

  async delete_topic ({ bootstrap, topic }) {
    await (await adminOf(bootstrap)).deleteTopics({ topics: [topic] })
  },

  async add_partitions ({ bootstrap, topic, partitions }) {
    await (await adminOf(bootstrap)).createPartitions({ topicPartitions: [{ topic, count: partitions }] })
  },

  async topic_configs ({ bootstrap, topic }) {
    const found = await (await adminOf(bootstrap)).describeConfigs({ includeSynonyms: true, resources: [resource(topic)] })
    return { configs: Object.fromEntries(found.resources[0].configEntries.map(row => [row.configName, row.configValue])) }
  },

  async set_topic_config ({ bootstrap, topic, key, value }) {
    const one = { ...resource(topic), configEntries: [{ name: key, value }] }
    await (await adminOf(bootstrap)).alterConfigs({ validateOnly: false, resources: [one] })
  },

  async list_groups ({ bootstrap }) {
    const { groups } = await (await adminOf(bootstrap)).listGroups()
    return { groups: Object.fromEntries(groups.map(row => [row.groupId, row.protocolType])) }
  },

  async describe_group ({ bootstrap, group }) {
    const { groups } = await (await adminOf(bootstrap)).describeGroups([group])
    const found = groups[0]
    const rows = found.members.map(member => {
      const { assignment } = kafkajs.AssignerProtocol.MemberAssignment.decode(member.memberAssignment)
      return Object.entries(assignment).flatMap(([topic, list]) => list.sort((a, b) => a - b).map(p => [topic, p]))
    })
    return { state: found.state, members: rows }
  },

  async delete_group ({ bootstrap, group }) {
    await (await adminOf(bootstrap)).deleteGroups([group])
  },

  async delete_records ({ bootstrap, topic, partition, offset }) {
    const library = await adminOf(bootstrap)
    // It looks for the leader in what it has loaded, and loads nothing for it.
    await library.fetchTopicOffsets(topic)
    await library.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] })
    const found = await library.fetchTopicOffsets(topic)
    return { low: Number(found.find(row => row.partition === partition).low) }
  },

  async reset () {
    for (const name of [...members.keys()]) await operations.consumer_close({ name })
    for (const name of [...producers.keys()]) await operations.producer_close({ name })
    await admin?.library.disconnect()
    admin = null
  }
}

// A seek is known only to a consumer that runs, which it does once it has joined.
operations.seek = async ({ name, topic, partition, offset }) => {
  const { library, store } = members.get(name)
  await until('the partition is assigned', 15, () => store.assignment.some(pair => pair[0] === topic && pair[1] === partition))
  library.seek({ topic, partition, offset: String(offset) })
  store.drop(record => record.topic === topic && record.partition === partition)
}

serve(require('kafkajs/package.json').version, operations, translate)
