// Compares a tools/call on a host with the console and an open live feed to a host without the console.
import { ok } from 'node:assert/strict'
import { PATHS, SECRET_HEADER } from '../../plugins/console/api.ts'
import { mcpHost } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'

const CONSOLE = { port: 47_613, token: 'token of the benchmark' }
const origin = `http://127.0.0.1:${CONSOLE.port}`

/** Opens the live feed and reads it until the host stops. */
async function watchCalls(): Promise<void> {
  const login = await fetch(`${origin}${PATHS.login}`, {
    method: 'POST',
    headers: { [SECRET_HEADER]: '1', 'Content-Type': 'application/json' },
    body: JSON.stringify({ token: CONSOLE.token }),
  })
  ok(login.ok, `the login returned ${login.status}`)
  const { secret } = (await login.json()) as { readonly secret: string }
  const [cookie = ''] = (login.headers.getSetCookie()[0] ?? '').split(';')
  const feed = await fetch(`${origin}${PATHS.events}`, { headers: { Cookie: cookie, [SECRET_HEADER]: secret } })
  ok(feed.ok, `the live feed returned ${feed.status}`)
  void feed.body?.pipeTo(new WritableStream()).catch(() => undefined)
}

const watched: Contestant = {
  ...mcpHost(1, callEcho, { plugins: { 'transport-streamable': {}, console: CONSOLE } }, 'console'),
  name: 'ours, console with a viewer',
  async request() {
    await watchCalls()
    return callEcho
  },
}

export const row: Row = {
  name: 'tools/call, console',
  contestants: [mcpHost(1, callEcho), watched],
  targets: [ratio(watched.name, 'ours, 1 tool', '<=', 1.1)],
  quick: ['ours, 1 tool', watched.name],
}
