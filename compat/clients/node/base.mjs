// What the Node drivers share: the line protocol, and a store for records that arrive on their own.

import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

export const pack = data => (data === null || data === undefined ? null : Buffer.from(data).toString('base64'))
export const unpack = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))

// An error with Kafka's number and name, as far as the library tells them.
export class OperationError extends Error {
  constructor (name, code, message) {
    super(message)
    this.name = name
    this.code = code
  }
}

// Looks through an error, its causes and its parts for the first that `pick` turns into an OperationError.
export function findInside (error, pick, seen = new Set()) {
  if (!error || typeof error !== 'object' || seen.has(error)) return null
  seen.add(error)
  const found = pick(error)
  if (found) return found
  for (const next of [error.cause, error.originalError, ...(error.errors ?? []), ...(error.groups ?? []).map(row => row.error)]) {
    const inner = findInside(next, pick, seen)
    if (inner) return inner
  }
  return null
}

// Records that came, the assignment, and what went wrong since the last look.
export class Store {
  constructor () {
    this.records = []
    this.assignment = []
    this.error = null
    this.wake = () => {}
  }

  add (records) {
    this.records.push(...records)
    if (records.length > 0) this.wake()
  }

  fail (error) {
    this.error = error
    this.wake()
  }

  drop (gone = () => true) {
    this.records = this.records.filter(record => !gone(record))
  }

  async take (max, waitMs) {
    if (this.records.length === 0 && !this.error) {
      await new Promise(resolve => {
        const timer = setTimeout(resolve, waitMs)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      this.wake = () => {}
    }
    const answer = { records: this.records.splice(0, max), assignment: this.assignment }
    if (this.error) {
      answer.error = { name: this.error.name, code: this.error.code, message: this.error.message }
      this.error = null
    }
    return answer
  }
}

const head = value => (value === null || value === undefined ? '-' : value.subarray(0, 32).toString().split('|')[0])

const microseconds = () => Math.round((performance.timeOrigin + performance.now()) * 1000)

// What an application does with records: it works on them for a while, writes down what it has done, and commits. The file
// survives a kill of the process; README.md has its lines.
export class Work {
  constructor ({ log, batch, record_us: recordUs, poison_key: poisonKey }) {
    this.file = openSync(log, 'a')
    this.batch = batch
    this.recordUs = recordUs
    this.poisonKey = poisonKey
  }

  note (...words) {
    const [kind, ...rest] = words.map(word => String(word).replaceAll('\n', ' '))
    writeSync(this.file, [kind, microseconds(), ...rest].join(' ') + '\n')
  }

  // `records` are {partition, offset, value} of one partition; `commit` takes the offset behind them. Says how many are done: all, or
  // those before a record that it cannot work on.
  async on (records, commit) {
    const bad = records.findIndex(record => this.poisonKey && head(record.value).split(':')[0] === this.poisonKey)
    const good = bad < 0 ? records : records.slice(0, bad)
    if (good.length > 0) await this.all(good, commit)
    if (bad >= 0) this.note('F', 'handler', `the record at offset ${records[bad].offset} cannot be read`)
    return good.length
  }

  async all (records, commit) {
    const begun = microseconds()
    await new Promise(resolve => setTimeout(resolve, (records.length * this.recordUs) / 1000))
    const ended = microseconds()
    writeSync(this.file, records.map(r => `R ${begun} ${ended} ${r.partition} ${r.offset} ${head(r.value)}\n`).join(''))
    const { partition, offset } = records.at(-1)
    const next = BigInt(offset) + 1n
    try {
      await commit(next)
      this.note('C', partition, next)
    } catch (error) {
      // The application goes on; what it did not commit comes again.
      this.note('F', 'commit', error)
    }
  }
}

// Looks at a condition until it holds.
export async function until (what, seconds, look) {
  const deadline = Date.now() + seconds * 1000
  while (!(await look())) {
    if (Date.now() > deadline) throw new OperationError('DRIVER_TIMEOUT', null, `not within ${seconds} s: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

// Reads requests and answers them one after the other with the functions of `operations`.
export function serve (version, operations, translate) {
  const out = line => process.stdout.write(JSON.stringify(line) + '\n')
  let last = Promise.resolve()
  const answer = async line => {
    const { id, op, ...given } = JSON.parse(line)
    try {
      if (!operations[op]) throw new OperationError('NO_SUCH_OPERATION', null, op)
      out({ id, ok: (await operations[op](given)) ?? {} })
    } catch (error) {
      if (!(error instanceof OperationError)) console.error(op, error)
      const said = error instanceof OperationError ? error : translate(error)
      out({ id, error: { name: said.name, code: said.code ?? null, message: said.message } })
    }
  }
  process.on('unhandledRejection', error => console.error('unhandled rejection', error))
  process.on('uncaughtException', error => console.error('uncaught exception', error))
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })
  lines.on('line', line => {
    last = last.then(() => answer(line))
  })
  lines.on('close', () => last.then(() => process.exit(0)))
  out({ ready: true, version })
}
