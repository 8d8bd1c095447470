// Measures `call_tool` and `find_tools` on a route with `search` and 100 tools. The query matches all tools.
import { mcpHost } from '../contestants.ts'
import { type BenchRequest, callEcho, callFindTools, callViaCallTool } from '../requests.ts'
import { type Row, ratio } from '../row.ts'

const TOOLS = 100
const SEARCH = { routes: { '/mcp': { toolsets: ['echoes'], search: {} } } }
const withSearch = (name: string, request: BenchRequest) => ({ ...mcpHost(TOOLS, request, SEARCH, name), name })

export const row: Row = {
  name: 'call_tool and find_tools',
  contestants: [
    mcpHost(TOOLS, callEcho),
    withSearch('call_tool', callViaCallTool('echo')),
    withSearch('find_tools', callFindTools('return a message')),
  ],
  targets: [ratio('call_tool', 'ours, 100 tools', '<=', 2)],
}
