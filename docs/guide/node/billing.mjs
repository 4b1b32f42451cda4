// Works on orders as a member of the group "billing", until it is told to stop: node billing.mjs NAME

import { setTimeout } from 'node:timers/promises'
import kafkajs from 'kafkajs'

const name = process.argv[2]
const kafka = new kafkajs.Kafka({
  // One of its own for each member: on one machine, kafkajs has nothing else by which a broker could tell two apart.
  clientId: `billing-${name}`,
  brokers: [process.env.BOOTSTRAP_SERVERS ?? '127.0.0.1:9092'],
  logLevel: kafkajs.logLevel.WARN
})
const consumer = kafka.consumer({ groupId: 'billing' })

async function work (message) {
  await setTimeout(1)
  console.log(name, String(message.key), String(message.value))
}

await consumer.connect()
await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
await consumer.run({
  autoCommitThreshold: 100,
  eachMessage: ({ message }) => work(message)
})

// Leaves the group at once: the other members need not wait for the session to end.
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => consumer.disconnect())
}
