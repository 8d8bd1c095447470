// Commits rows to a database and says of each, once it is committed, where the log of the power cut was: what a store does,
// in its smallest form. Arguments: the file, the setting of `synchronous`, the log, how many.
import { statSync, writeSync } from 'node:fs'
import { openDatabase } from './sqlite.ts'

const [file = '', synchronous = '', log = '', count = '0'] = process.argv.slice(2)
const database = openDatabase(file)
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; PRAGMA wal_autocheckpoint = 20`)
database.exec('CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, text TEXT)')
const insert = database.prepare('INSERT INTO rows (id, text) VALUES (?, ?)')
for (let id = 1; id <= Number(count); id++) {
  insert.run(id, 'x'.repeat((id * 997) % 6_000))
  writeSync(1, `${id} ${statSync(log).size}\n`)
}
database.close()
