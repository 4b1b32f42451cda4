// Driver for @platformatic/kafka.

import { readFileSync } from 'node:fs'
import { Admin, Consumer, Producer, cooperativeStickyAssigner } from '@platformatic/kafka'
import { Store, OperationError, Work, findInside, pack, serve, unpack } from './base.mjs'

const version = JSON.parse(readFileSync(new URL('./node_modules/@platformatic/kafka/package.json', import.meta.url))).version

function translate (error) {
  const inner = findInside(error, e => (typeof e.apiCode === 'number' ? new OperationError(e.apiId, e.apiCode, e.message) : null))
  return inner ?? new OperationError(error.code ?? error.name ?? 'Error', null, String(error.message ?? error))
}

const common = (bootstrap, retries = 60) => ({
  clientId: 'compat-platformatic',
  bootstrapBrokers: [bootstrap],
  retries,
  retryDelay: 100,
  timeout: 10000,
  connectTimeout: 5000
})

const producers = new Map()
const members = new Map()
let admin = null

async function adminOf (bootstrap) {
  if (admin?.bootstrap !== bootstrap) {
    await admin?.library.close()
    admin = { bootstrap, library: new Admin(common(bootstrap, 10)) }
  }
  return admin.library
}

const rowsOf = assignments => (assignments ?? []).flatMap(row => [...row.partitions].sort((a, b) => a - b).map(p => [row.topic, p]))

// Works on what the stream brings, until it ends.
async function workOn (stream, library, work) {
  let part = []
  try {
    for await (const message of stream) {
      // The stream may still hold records of a partition that was just given up.
      if (!rowsOf(library.assignments).some(([topic, p]) => topic === message.topic && p === message.partition)) continue
      if (part.length > 0 && part[0].partition !== message.partition) await finish()
      part.push(message)
      if (part.length >= work.batch || stream.readableLength === 0) await finish()
    }
  } catch (error) {
    work.note('F', 'stream', error)
  }

  async function finish () {
    const [{ topic, partition }, rows] = [part[0], part]
    part = []
    await work.on(rows, offset => library.commit({ offsets: [{ topic, partition, offset, leaderEpoch: -1 }] }))
  }
}

const operations = {
  async producer_open ({ name, bootstrap, idempotent, compression, acks, retries }) {
    const library = new Producer({
      ...common(bootstrap, retries),
      idempotent: idempotent ?? false,
      compression: compression ?? 'none',
      acks: acks ?? -1,
      autocreateTopics: true
    })
    producers.set(name, library)
  },

  async produce ({ name, topic, records }) {
    const messages = records.map(record => {
      const one = { topic, headers: new Map(record.headers.map(([key, value]) => [Buffer.from(key), unpack(value)])) }
      if (record.key !== null) one.key = unpack(record.key)
      if (record.value !== null) one.value = unpack(record.value)
      if (record.partition !== null) one.partition = record.partition
      if (record.timestamp !== null) one.timestamp = BigInt(record.timestamp)
      return one
    })
    const { offsets } = await producers.get(name).send({ messages })
    const next = new Map(offsets.map(row => [row.partition, Number(row.offset)]))
    const results = records.map(record => {
      const partition = record.partition ?? offsets[0].partition
      const offset = next.get(partition)
      next.set(partition, offset + 1)
      return [partition, offset]
    })
    return { results }
  },

  async producer_close ({ name }) {
    const library = producers.get(name)
    producers.delete(name)
    await library.close()
  },

  async consumer_open ({ name, bootstrap, group, topics, reset, protocol, assignor, instance, session_ms, fetch_bytes, auto_create, refresh_ms, isolation, work: working }) {
    const store = new Store()
    const work = working ? new Work(working) : null
    const options = { ...common(bootstrap), groupId: group, maxWaitTime: 200, autocreateTopics: auto_create ?? false }
    if (refresh_ms) options.metadataMaxAge = refresh_ms
    if (instance) options.groupInstanceId = instance
    if (protocol === 'consumer') {
      options.groupProtocol = 'consumer'
      if (assignor) options.groupRemoteAssignor = assignor
    } else {
      Object.assign(options, { sessionTimeout: session_ms ?? 6000, rebalanceTimeout: Math.max(10000, session_ms ?? 0), heartbeatInterval: 500 })
      if (assignor === 'cooperative-sticky') {
        Object.assign(options, { protocols: [{ name: 'cooperative-sticky', version: 1 }], partitionAssigner: cooperativeStickyAssigner })
      }
    }
    if (isolation) options.isolationLevel = isolation === 'read_committed' ? 1 : 0
    if (fetch_bytes) Object.assign(options, { maxBytes: fetch_bytes, maxBytesPerPartition: fetch_bytes })
    const library = new Consumer(options)
    const assigned = rows => {
      store.assignment = rows
      store.drop(record => !rows.some(([topic, partition]) => topic === record.topic && partition === record.partition))
    }
    library.on('consumer:group:join', () => assigned(rowsOf(library.assignments)))
    library.on('consumer:group:rebalance', () => assigned(rowsOf(library.assignments)))
    const fallbackMode = { latest: 'latest', none: 'fail' }[reset] ?? 'earliest'
    const stream = await library.consume({ topics, autocommit: false, mode: 'committed', fallbackMode, maxWaitTime: 200 })
    stream.on('error', error => {
      console.error('stream', error)
      work?.note('F', 'stream', error)
      store.fail(translate(error))
    })
    members.set(name, { library, stream, store, group, bootstrap, work, done: work ? workOn(stream, library, work) : null })
    if (work) return
    stream.on('data', message => {
      const row = [message.topic, message.partition]
      // The stream may still hold records of a partition that was just given up.
      store.assignment = rowsOf(library.assignments)
      if (!store.assignment.some(pair => pair[0] === row[0] && pair[1] === row[1])) return
      store.add([
        {
          topic: message.topic,
          partition: message.partition,
          offset: Number(message.offset),
          key: pack(message.key),
          value: pack(message.value),
          headers: message.headerEntries.map(([key, value]) => [key.toString(), pack(value)]),
          timestamp: Number(message.timestamp)
        }
      ])
    })
  },

  async take ({ name, max, wait_ms }) {
    const { store, library } = members.get(name)
    store.assignment = rowsOf(library.assignments)
    return store.take(max, wait_ms)
  },

  async commit ({ name, offsets }) {
    const rows = offsets.map(([topic, partition, offset]) => ({ topic, partition, offset: BigInt(offset), leaderEpoch: -1 }))
    await members.get(name).library.commit({ offsets: rows })
  },

  async committed ({ name, partitions }) {
    const topics = [...new Set(partitions.map(pair => pair[0]))]
    const asked = topics.map(topic => ({ topic, partitions: partitions.filter(pair => pair[0] === topic).map(pair => pair[1]) }))
    const found = await members.get(name).library.listCommittedOffsets({ topics: asked })
    return { offsets: asked.flatMap(row => row.partitions.map((p, i) => [row.topic, p, Number(found.get(row.topic)[i]), ''])) }
  },

  async offsets_for_times ({ name, topic, partition, timestamp }) {
    const { library } = members.get(name)
    const found = await library.listOffsets({ topics: [topic], partitions: { [topic]: [partition] }, timestamp: BigInt(timestamp) })
    return { offset: Number(found.get(topic)[partition]) }
  },

  async consumer_close ({ name }) {
    const { library, stream, work } = members.get(name)
    members.delete(name)
    await stream.close()
    await library.close(true)
    work?.note('E')
  },

  async metadata ({ bootstrap }) {
    const library = await adminOf(bootstrap)
    const names = await library.listTopics()
    const found = await library.metadata({ topics: names, forceUpdate: true })
    return {
      brokers: [...found.brokers].map(([id, row]) => [id, row.host, row.port]),
      topics: Object.fromEntries([...found.topics].filter(row => names.includes(row[0])).map(([name, row]) => [name, row.partitionsCount]))
    }
  },

  async create_topic ({ bootstrap, topic, partitions, configs }) {
    const entries = Object.entries(configs ?? {}).map(([name, value]) => ({ name, value }))
    await (await adminOf(bootstrap)).createTopics({ topics: [topic], partitions, replicas: 1, configs: entries })
  },

  async delete_topic ({ bootstrap, topic }) {
    await (await adminOf(bootstrap)).deleteTopics({ topics: [topic] })
  },

  async add_partitions ({ bootstrap, topic, partitions }) {
    await (await adminOf(bootstrap)).createPartitions({ topics: [{ name: topic, count: partitions, assignments: null }] })
  },

  async topic_configs ({ bootstrap, topic }) {
    const found = await (await adminOf(bootstrap)).describeConfigs({ resources: [{ resourceType: 2, resourceName: topic }] })
    return { configs: Object.fromEntries(found[0].configs.map(row => [row.name, row.value])) }
  },

  async set_topic_config ({ bootstrap, topic, key, value }) {
    const one = { resourceType: 2, resourceName: topic, configs: [{ name: key, configOperation: 0, value }] }
    await (await adminOf(bootstrap)).incrementalAlterConfigs({ resources: [one] })
  },

  async list_groups ({ bootstrap }) {
    const found = await (await adminOf(bootstrap)).listGroups()
    return { groups: Object.fromEntries([...found].map(([name, row]) => [name, row.state])) }
  },

  async describe_group ({ bootstrap, group }) {
    const found = (await (await adminOf(bootstrap)).describeGroups({ groups: [group] })).get(group)
    const rows = [...found.members.values()].map(member => rowsOf([...(member.assignments?.values() ?? [])]))
    return { state: found.state, members: rows }
  },

  async delete_group ({ bootstrap, group }) {
    await (await adminOf(bootstrap)).deleteGroups({ groups: [group] })
  },

  async delete_records ({ bootstrap, topic, partition, offset }) {
    const topics = [{ name: topic, partitions: [{ partition, offset: BigInt(offset) }] }]
    const found = await (await adminOf(bootstrap)).deleteRecords({ topics })
    return { low: Number(found[0].partitions[0].lowWatermark) }
  },

  async reset () {
    for (const name of [...members.keys()]) await operations.consumer_close({ name })
    for (const name of [...producers.keys()]) await operations.producer_close({ name })
    await admin?.library.close()
    admin = null
  }
}

serve(version, operations, translate)
