// A program that embeds a host: it prints where it listens, and closes it when its input ends.
import { createHost, type Host } from 'mcp-host/host'
import config from './mcp.config.ts'

const host: Host = await createHost(config)
await host.listen()
console.log(`listening on ${host.url}`)
process.stdin.once('end', () => host.close()).resume()
