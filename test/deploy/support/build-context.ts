// What `docker build` gives to the engine: Docker's own client reads .dockerignore and packs the folder, and a listener of
// the test stands where the engine would be.
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'

/** The client packs these whatever is left out, for the engine reads them; it takes them away before COPY where they are. */
const ALWAYS = ['Dockerfile', '.dockerignore']

/** Files of the folder that COPY would find, by their paths in it, sorted. Throws where nothing was given. */
export async function contextOf(folder: string): Promise<string[]> {
  const own = mkdtempSync(join(tmpdir(), 'mcp-host-engine-'))
  let given: Buffer | undefined
  const engine = createServer(async (req, res) => {
    const body = await buffer(req)
    if (req.url?.includes('/build')) given = body
    res.writeHead(200, { 'Api-Version': '1.50', Ostype: 'linux', 'Builder-Version': '1' }).end('{"stream":"taken"}\n')
  }).listen(join(own, 'engine.sock'))
  await once(engine, 'listening')
  try {
    // The older of its builders: it packs all there is, and the newer one asks for what it needs by a protocol of its own.
    const env = { ...process.env, HOME: own, DOCKER_BUILDKIT: '0', DOCKER_HOST: `unix://${join(own, 'engine.sock')}` }
    await promisify(execFile)('docker', ['build', folder], { env })
    if (given === undefined) throw new Error('docker build gave nothing')
    const names = execFileSync('tar', ['-tf', '-'], { input: given, encoding: 'utf8' }).split('\n')
    return names.filter(name => name !== '' && !name.endsWith('/') && !ALWAYS.includes(name)).sort()
  } finally {
    engine.close()
    rmSync(own, { recursive: true, force: true })
  }
}
