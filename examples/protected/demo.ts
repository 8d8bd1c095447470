// `npm run demo:auth`: serves the protected example and says how to sign in.
import { loadHost } from 'mcp-host/host'

const host = await loadHost({ cwd: import.meta.dirname, file: 'mcp.config.ts' })
await host.listen()
const address = `${host.url}/`

console.log(`A protected MCP server:    ${address}
Its authorization server:  ${host.url}/dev-auth

Connect a client; it finds the way to sign in by itself. Then choose Ada or Bob, and click "Allow".

  npx @modelcontextprotocol/inspector          transport Streamable HTTP, URL ${address}
  claude mcp add --transport http demo ${address}

Call current_time, then clear_cache: it needs one more scope, for which the client asks you again.
Bob is no administrator: he gets no further. What a client without a token is told:

  curl -si ${address} -X POST

From outside, the whole way: npx tsx cli/bin.ts doctor --url ${address}`)

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await host.close()
    process.exit(0)
  })
}
