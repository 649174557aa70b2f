// kafkajs in a process that takes commands: a line of JSON in, [name, ...arguments]; a line of JSON
// out, {"ok": answer} or {"error": text}. Bytes are hexadecimal, absent ones null.
'use strict'

const readline = require('readline')
const { AssignerProtocol, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } =
  require('kafkajs')

const kafka = new Kafka({
  brokers: process.argv[2].split(','),
  clientId: 'trionet-tests',
  logLevel: logLevel.NOTHING,
})
// It would try again for ten seconds what is refused for good, such as to delete an unknown topic.
const admin = kafka.admin({ retry: { retries: 2, initialRetryTime: 50 } })
const members = new Map()
let groups = 0

const hex = bytes => (bytes === null || bytes === undefined ? null : bytes.toString('hex'))
const bytes = text => (text === null ? null : Buffer.from(text, 'hex'))

// Of a name that the other libraries know, too. kafkajs' own is called RoundRobinAssigner, which
// nobody else has; but what it says of members and assignments has Kafka's form.
const range = ({ cluster }) => ({
  name: 'range',
  version: 0,
  protocol: ({ topics }) => ({
    name: 'range',
    metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics }),
  }),
  assign: async ({ members, topics }) => {
    const ids = members.map(({ memberId }) => memberId).sort()
    const given = new Map(ids.map(id => [id, {}]))
    for (const topic of topics) {
      const partitions = cluster.findTopicPartitionMetadata(topic).map(each => each.partitionId)
      partitions.sort((a, b) => a - b)
      const share = Math.floor(partitions.length / ids.length)
      const more = partitions.length % ids.length
      ids.forEach((id, index) => {
        const start = share * index + Math.min(index, more)
        const end = start + share + (index < more ? 1 : 0)
        given.get(id)[topic] = partitions.slice(start, end)
      })
    }
    return ids.map(memberId => ({
      memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({
        version: 0,
        assignment: given.get(memberId),
        userData: Buffer.alloc(0),
      }),
    }))
  },
})

const shown = (partition, message) => ({
  partition,
  offset: Number(message.offset),
  key: hex(message.key),
  value: hex(message.value),
  timestamp: Number(message.timestamp),
  headers: Object.entries(message.headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map(each => [name, hex(each)])
  ),
})

const commands = {
  async write(topic, records, codec, idempotent, atOnce) {
    const producer = kafka.producer({ idempotent, maxInFlightRequests: 1 })
    await producer.connect()
    try {
      const messages = records.map(({ key, value, headers, timestamp, partition }) => {
        const named = {}
        for (const [name, each] of headers) (named[name] = named[name] || []).push(bytes(each))
        return {
          key: bytes(key),
          value: bytes(value),
          headers: named,
          timestamp: timestamp === null ? undefined : String(timestamp),
          partition,
        }
      })
      const compression = CompressionTypes[codec === 'none' ? 'None' : codec.toUpperCase()]
      const bases = new Map()
      for (let first = 0; first < messages.length; first += atOnce) {
        const some = messages.slice(first, first + atOnce)
        const answers = await producer.send({ topic, messages: some, acks: -1, compression })
        for (const { partition, baseOffset } of answers) {
          if (!bases.has(partition)) bases.set(partition, Number(baseOffset))
        }
      }
      return [...bases]
    } finally {
      await producer.disconnect()
    }
  },

  // It has no consumer without a group: one that nobody else is in, put where reading begins.
  async read(topic, counts, start) {
    const consumer = kafka.consumer({ groupId: `read-${process.pid}-${groups++}` })
    const wanted = new Map(counts)
    const found = []
    let left = counts.reduce((sum, [, count]) => sum + count, 0)
    await consumer.connect()
    try {
      await consumer.subscribe({ topic, fromBeginning: true })
      await new Promise((resolve, reject) => {
        consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
        consumer
          .run({
            autoCommit: false,
            eachMessage: async ({ partition, message }) => {
              if (!wanted.get(partition) || Number(message.offset) < start) return
              wanted.set(partition, wanted.get(partition) - 1)
              found.push(shown(partition, message))
              if (--left === 0) resolve()
            },
          })
          .catch(reject)
        for (const [partition] of counts) consumer.seek({ topic, partition, offset: `${start}` })
      })
    } finally {
      await consumer.disconnect()
    }
    return found.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
  },

  // A member that stays until it is told to leave.
  async join(name, groupId, topic, assigner) {
    const more = assigner === 'range' ? { partitionAssigners: [range] } : {}
    const consumer = kafka.consumer({
      groupId,
      heartbeatInterval: 300,
      maxWaitTimeInMs: 100,
      ...more,
    })
    const member = { consumer, held: [], values: [], rebalances: 0, crash: null }
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      member.rebalances++
      member.held = payload.memberAssignment[topic] || []
    })
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      member.crash = `${payload.error.type || payload.error.name}: ${payload.error.message}`
    })
    members.set(name, member)
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    // Not waited for: the group may need others, who are not asked while this command goes on.
    member.run = consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        member.values.push(hex(message.value))
        const offset = String(Number(message.offset) + 1)
        await consumer.commitOffsets([{ topic, partition, offset }])
      },
    })
  },
  async look(name) {
    const { held, values, rebalances, crash } = members.get(name)
    return { held, values, rebalances, crash }
  },
  async leave(name) {
    await members.get(name).consumer.disconnect()
    members.delete(name)
  },

  async create(topic, numPartitions, configEntries) {
    await admin.createTopics({ topics: [{ topic, numPartitions, configEntries }] })
      .then(made => {
        if (!made) throw new Error(`topic ${topic} exists`)
      })
  },
  delete: topic => admin.deleteTopics({ topics: [topic] }),
  async topics() {
    const { topics } = await admin.fetchTopicMetadata()
    return topics.map(({ name, partitions }) => [name, partitions.length])
  },
  async config(name) {
    const wanted = [{ type: ConfigResourceTypes.TOPIC, name }]
    const { resources } = await admin.describeConfigs({ resources: wanted })
    return resources[0].configEntries.map(({ configName, configValue }) =>
      [configName, configValue])
  },
  async cluster() {
    const { clusterId, brokers } = await admin.describeCluster()
    return [clusterId, brokers.map(({ host, port }) => `${host}:${port}`)]
  },
  async ends(topic) {
    const ends = await admin.fetchTopicOffsets(topic)
    return ends.map(({ partition, low, high }) => [partition, Number(low), Number(high)])
  },
  async time(topic, timestamp) {
    const [{ offset }] = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
    return Number(offset)
  },
  async groups() {
    const { groups } = await admin.listGroups()
    return groups.map(({ groupId, protocolType }) => [groupId, protocolType])
  },
  async group(groupId) {
    const { groups } = await admin.describeGroups([groupId])
    const [{ state, protocol, members }] = groups
    return { state, protocol, members: members.length }
  },
  deleteGroup: groupId => admin.deleteGroups([groupId]),
  async offsets(groupId, topic) {
    const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] })
    return partitions.map(({ partition, offset }) => [partition, Number(offset)])
  },
  async setOffsets(groupId, topic, offsets) {
    const partitions = offsets.map(([partition, offset]) => ({ partition, offset: `${offset}` }))
    await admin.setOffsets({ groupId, topic, partitions })
  },
}

const why = error => {
  const first = (error.errors && error.errors[0]) || (error.groups && error.groups[0].error) || error
  return [first.name, first.type, first.message].filter(Boolean).join(': ')
}

async function main() {
  await admin.connect()
  console.log(JSON.stringify({ ok: 'ready' }))
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, ...parameters] = JSON.parse(line)
    let answer
    try {
      const ok = await commands[name](...parameters)
      answer = { ok: ok === undefined ? null : ok }
    } catch (error) {
      answer = { error: why(error) }
    }
    console.log(JSON.stringify(answer))
  }
  await Promise.all([...members.values()].map(({ consumer }) => consumer.disconnect()))
  await admin.disconnect()
}

main()
