// A real nginx in front of nodes, with examples/scaling/nginx.conf: round-robin without client affinity. It runs as one
// process in the foreground, in its own folder, and ends with the test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from 'mocha'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { needsProgram } from '../../support/needs-program.ts'

export const NGINX_INSTALL = 'apt-get install nginx'
export const needsNginx = (context: Context) => needsProgram(context, 'nginx', NGINX_INSTALL)

export interface Nginx {
  /** Without a trailing slash. */
  readonly url: string
  /** Requests that each node was given so far, by its port; one that was tried at two nodes counts at both. */
  counts(): Map<number, number>
  stop(): Promise<void>
}

const EXAMPLE = new URL('../../../examples/scaling/nginx.conf', import.meta.url)

/** The example, with other addresses. */
function serverText(port: number, nodes: readonly number[]): string {
  const servers = nodes.map(node => `server 127.0.0.1:${node} max_fails=1 fail_timeout=1s;`)
  const [upstream, listen] = [/(?:^ *server 127\.0\.0\.1:\d+ .*;\n)+/m, /listen [^;]+;/]
  const text = readFileSync(EXAMPLE, 'utf8')
  if (!upstream.test(text) || !listen.test(text)) throw new Error(`${EXAMPLE} is not what this expects`)
  return text.replace(upstream, `${servers.join('\n')}\n`).replace(listen, `listen 127.0.0.1:${port};`)
}

const configText = (port: number, nodes: readonly number[]) => `
daemon off;
master_process off;
pid nginx.pid;
error_log error.log warn;
events { worker_connections 4096; }
http {
  log_format nodes '$upstream_addr $status $request_method';
  access_log access.log nodes;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
${serverText(port, nodes)}
}
`

function connects(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** Resolves when it accepts connections. */
export async function startNginx(nodes: readonly number[]): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  const port = await freePort()
  writeFileSync(join(folder, 'nginx.conf'), configText(port, nodes))
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')]
  const child = spawn('nginx', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text
  })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)

  async function stop() {
    process.off('exit', kill)
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit')
      kill()
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  }

  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  await eventually('nginx listens', async () => hasEnded() || connects(port))
  if (hasEnded()) {
    await stop()
    throw new Error(`nginx ended at its start: ${complaint}`)
  }
  return {
    url: `http://127.0.0.1:${port}`,
    counts() {
      const counts = new Map(nodes.map(node => [node, 0]))
      for (const [, node] of readFileSync(join(folder, 'access.log'), 'utf8').matchAll(/127\.0\.0\.1:(\d+)/g)) {
        counts.set(Number(node), (counts.get(Number(node)) ?? 0) + 1)
      }
      return counts
    },
    stop,
  }
}
