// Compares a tools/call with sessions in memory, in SQLite and in Redis.
import { CONFIG_IMPORTS } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Row, ratio } from '../row.ts'
import { contestantsPerStore, MEMORY, SQLITE, storeConfigKeys } from '../session-stores.ts'

const createConfig = (plugins: object) => `${CONFIG_IMPORTS}
export default {
  server: SERVER_INFO,
  toolsets: { echoes: makeTools(1).map(tool => defineTool({ ...tool, input: INPUT_SCHEMA, handler: ({ message }) => message })) },
  routes: { '/mcp': { toolsets: ['echoes'] } },
  ${storeConfigKeys(plugins)}
}
`

export const row: Row = {
  name: 'tools/call in a stored session',
  contestants: contestantsPerStore({ file: 'stored-call', request: callEcho, createConfig }),
  targets: [ratio(SQLITE, MEMORY, '<=', 3)],
}
