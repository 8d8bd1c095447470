// A user with a browser. For CLI processes, the program in BROWSER sends the URL to the test, which acts as the user
// and follows the redirect back.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { makeFolder } from '../config/folder.ts'

export interface FakeBrowser {
  /** For the environment of the process. */
  readonly env: { readonly BROWSER: string; readonly TEST_BROWSER: string }
  /** Opens an address, for commands in this process. */
  open(url: URL): Promise<void>
  /** Every address that was opened. */
  readonly opened: URL[]
}

/** Not by `fetch`, which takes longer to load than all the rest. */
const PROGRAM = `import { request } from 'node:http'
request(process.env.TEST_BROWSER, { method: 'POST' }).end(process.argv[2])
`

const servers: Server[] = []

/** `person`: from an authorization URL to the callback URL that it ends at. */
export async function startFakeBrowser(person: (url: URL) => Promise<URL>): Promise<FakeBrowser> {
  const folder = await makeFolder({ 'browser.mjs': PROGRAM })
  const opened: URL[] = []
  const visit = async (url: URL) => {
    opened.push(url)
    const page = await fetch(await person(url))
    await page.body?.cancel()
  }
  const server = createServer(async (request, response) => {
    let address = ''
    for await (const piece of request) address += String(piece)
    response.end()
    await visit(new URL(address))
  })
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const env = {
    BROWSER: `${process.execPath} ${join(folder, 'browser.mjs')}`,
    TEST_BROWSER: `http://127.0.0.1:${port}`,
  }
  // As a browser does, it returns before the person has finished.
  return { env, opened, open: async url => void visit(url).catch(() => undefined) }
}

/** For `after`. */
export async function stopFakeBrowsers(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
}
