// What a route with `search` costs, with 100 tools: a call by way of `call_tool` against the same by the tool's own name, and
// `find_tools`, whose query fits every tool there is.
import { ours } from '../contestants.ts'
import { type BenchRequest, callEcho, callThrough, findTools } from '../requests.ts'
import { type Row, ratio } from '../row.ts'

const TOOLS = 100
const SEARCH = { routes: { '/mcp': { toolsets: ['echoes'], search: {} } } }
const searching = (name: string, request: BenchRequest) => ({ ...ours(TOOLS, request, SEARCH, name), name })

export const row: Row = {
  name: 'call_tool and find_tools',
  contestants: [
    ours(TOOLS, callEcho),
    searching('call_tool', callThrough('echo')),
    searching('find_tools', findTools('return a message')),
  ],
  targets: [ratio('call_tool', 'ours, 100 tools', '<=', 2)],
}
