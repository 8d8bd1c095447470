// `npm run demo:auth`: serves the protected example and prints how to sign in.
import { loadHost } from 'mcp-host/host'

const host = await loadHost({ cwd: import.meta.dirname, file: 'mcp.config.ts' })
await host.listen()
const url = `${host.url}/`

console.log(`Protected MCP server:   ${url}
Authorization server:   ${host.url}/dev-auth

Connect a client. It opens the sign-in page: choose Ada or Bob, then click "Allow".

  npx @modelcontextprotocol/inspector          transport Streamable HTTP, URL ${url}
  claude mcp add --transport http demo ${url}

Call current_time, then clear_cache. It requires another scope, so the client opens the sign-in page again.
Bob is not an administrator and gets 403. The response to a request without a token:

  curl -si ${url} -X POST

Check the server from outside: npx tsx cli/bin.ts doctor --url ${url}`)

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await host.close()
    process.exit(0)
  })
}
