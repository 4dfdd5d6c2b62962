// @nxtedition/rocksdb: abstract-level, with its own merge operator.
'use strict'
const { edits, Digest, serve } = require('./driver')
const { RocksLevel } = require(process.env.PACKAGE)

const encoding = { keyEncoding: 'buffer', valueEncoding: 'buffer' }

serve({
  async open (dir, create) {
    const db = new RocksLevel(dir, encoding)
    await db.open({ createIfMissing: create })
    return db
  },
  write (db, round, count) {
    return db.batch(edits(round, 'default', count).map(([key, value]) =>
      value === null ? { type: 'del', key } : { type: 'put', key, value }))
  },
  async read (db) {
    const digest = new Digest()
    for await (const [key, value] of db.iterator(encoding)) digest.add(key, value)
    return { default: digest.result() }
  },
  close (db) {
    return db.close()
  }
})
