// What keeping sessions costs a tools/call: nothing kept but in memory, in a file, and in Redis, all on one Node.
import { CONFIG_IMPORTS } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Row, ratio } from '../row.ts'
import { IN_MEMORY, ON_SQLITE, onEachStore, storedWith } from '../stores.ts'

const configText = (plugins: object) => `${CONFIG_IMPORTS}
export default {
  server: SERVER_INFO,
  toolsets: { echoes: toolTexts(1).map(text => defineTool({ ...text, input: INPUT_SCHEMA, handler: ({ message }) => message })) },
  routes: { '/mcp': { toolsets: ['echoes'] } },
  ${storedWith(plugins)}
}
`

export const row: Row = {
  name: 'tools/call in a stored session',
  contestants: onEachStore({ file: 'stored-call', request: callEcho, configText }),
  targets: [ratio(ON_SQLITE, IN_MEMORY, '<=', 3)],
}
