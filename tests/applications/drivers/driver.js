// Shared by the Node drivers: the loop over verbs, the writes of an application,
// and the digest of its reads. See driver.py.
'use strict'
const crypto = require('crypto')
const fs = require('fs')
const readline = require('readline')

const KEYS = 6000

// Returns the writes of an application into `family` in a round, which are the
// same at each call: pairs of key and value; value null: a deletion.
function edits (round, family, count) {
  const pairs = []
  for (let i = 0; i < count; i++) {
    const bytes = crypto.createHash('sha512').update(`${round} ${family} ${i}`).digest()
    const key = Buffer.from('key' + String(bytes.readUInt32LE(0) % KEYS).padStart(8, '0'))
    if (bytes[4] % 10 === 0) {
      pairs.push([key, null])
    } else {
      const half = bytes.subarray(5, 5 + bytes[63] % 58)
      pairs.push([key, Buffer.concat([half, half, half, Buffer.alloc(bytes[62], round % 256)])])
    }
  }
  return pairs
}

class Digest {
  constructor () {
    this.hash = crypto.createHash('sha256')
    this.count = 0
  }

  add (key, value) {
    for (const field of [key, value]) {
      this.hash.update(`${field.length}:`)
      this.hash.update(field)
    }
    this.count++
  }

  result () {
    return [this.count, this.hash.digest('hex').slice(0, 32)]
  }
}

// `application` has open(dir, create), write(db, round, count), read(db),
// close(db), and flush(db) if it supports that; all may be asynchronous.
async function serve (application) {
  let held
  async function answer ([verb, ...args]) {
    switch (verb) {
      case 'make':
        fs.mkdirSync(args[0], { recursive: true })
        for (let session = 0; session < 3; session++) {
          const db = await application.open(args[0], session === 0)
          await application.write(db, Number(args[1]) * 1000 + session, 4000)
          if (session < 2 && application.flush) await application.flush(db)
          await application.close(db)
        }
        return {}
      case 'change': {
        const db = await application.open(args[0], false)
        await application.write(db, Number(args[1]), 200)
        await application.close(db)
        return {}
      }
      case 'dump': {
        const db = await application.open(args[0], false)
        try {
          return await application.read(db)
        } finally {
          await application.close(db)
        }
      }
      case 'hold':
        held = await application.open(args[0], false)
        return {}
      case 'write':
        await application.write(held, Number(args[0]), 200)
        return {}
      case 'digest':
        return application.read(held)
      case 'storm':
        (async () => {
          for (let round = 1 << 20; ; round++) await application.write(held, round, 50)
        })()
        return {}
      case 'release':
        await application.close(held)
        return {}
      default:
        throw new Error(`unknown verb ${verb}`)
    }
  }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let text
    try {
      text = 'ok ' + JSON.stringify(await answer(line.trim().split(' ')))
    } catch (e) {
      text = 'error ' + String(e.cause ? `${e} ${e.cause}` : e).replace(/\n/g, ' ')
    }
    process.stdout.write(text + '\n')
  }
  process.exit(0)
}

module.exports = { edits, Digest, serve }
