// Starts Redis, nodes of the compiled package, and nginx if there are several nodes. Stops all of them on SIGTERM.
// Arguments: the number of nodes, then the command of a node.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { startNginx } from '../../test/cluster/support/nginx.ts'
import { freePort } from '../../test/support/free-port.ts'
import { inPath } from '../../test/support/needs-program.ts'
import { startRedis } from '../../test/support/redis-server.ts'

const [count, ...command] = process.argv.slice(2)
const children: ChildProcess[] = []

process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

async function startNode(env: Record<string, string>): Promise<number> {
  const port = await freePort()
  const child = spawn(process.execPath, command, {
    env: { ...process.env, ...env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  await new Promise<void>((resolve, reject) => {
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.includes('listening on')) resolve()
    })
    child.once('exit', code => reject(new Error(`a node exited with ${code}: ${output}`)))
  })
  return port
}

for (const program of ['redis-server', 'nginx']) {
  if (!inPath(program)) throw new Error(`${program} is not in PATH: apt-get install ${program}`)
}
const redis = await startRedis()
const env = { REDIS_URL: redis.url, MCP_HOST_SECRETS: randomBytes(32).toString('base64') }
const ports = await Promise.all(Array.from({ length: Number(count) }, () => startNode(env)))
const nginx = ports.length > 1 ? await startNginx(ports) : undefined

process.once('SIGTERM', async () => {
  await nginx?.stop()
  await redis.remove()
  process.exit(0)
})
console.log(`listening on ${nginx?.url ?? `http://127.0.0.1:${ports[0]}`}`)
