// npm rocksdb: the store of LevelUP, with LevelDOWN's interface.
'use strict'
const { promisify } = require('util')
const { edits, Digest, serve } = require('./driver')
const rocksdb = require(process.env.PACKAGE)

serve({
  async open (dir, create) {
    const db = rocksdb(dir)
    await promisify(db.open).call(db, { createIfMissing: create })
    return db
  },
  async write (db, round, count) {
    const batch = edits(round, 'default', count).map(([key, value]) =>
      value === null ? { type: 'del', key } : { type: 'put', key, value })
    await promisify(db.batch).call(db, batch)
  },
  async read (db) {
    const digest = new Digest()
    const iterator = db.iterator({ keyAsBuffer: true, valueAsBuffer: true })
    await new Promise((resolve, reject) => {
      const step = () => iterator.next((error, key, value) => {
        if (error) return reject(error)
        if (key === undefined) return resolve()
        digest.add(key, value)
        setImmediate(step)
      })
      step()
    })
    await promisify(iterator.end).call(iterator)
    return { default: digest.result() }
  },
  close (db) {
    return promisify(db.close).call(db)
  }
})
