// rocksdb-native: Holepunch's store for Bare and Node, with a second
// column family.
'use strict'
const { edits, Digest, serve } = require('./driver')
const RocksDB = require(process.env.PACKAGE)

serve({
  async open (dir, create) {
    const db = new RocksDB(dir, {
      columnFamilies: ['second'],
      createIfMissing: create
    })
    await db.ready()
    return { db, families: { default: db, second: db.columnFamily('second') } }
  },
  async write ({ families }, round, count) {
    for (const [name, family] of Object.entries(families)) {
      const batch = family.write()
      for (const [key, value] of edits(round, name, count)) {
        if (value === null) batch.tryDelete(key)
        else batch.tryPut(key, value)
      }
      await batch.flush()
      batch.destroy()
    }
  },
  async read ({ families }) {
    const result = {}
    for (const [name, family] of Object.entries(families)) {
      const digest = new Digest()
      for await (const { key, value } of family.iterator({ gte: Buffer.alloc(0), lt: Buffer.alloc(4, 255) })) {
        digest.add(key, value)
      }
      result[name] = digest.result()
    }
    return result
  },
  async flush ({ families }) {
    for (const family of Object.values(families)) await family.flush()
  },
  async close ({ db, families }) {
    await families.second.close()
    await db.close({ force: true })
  }
})
