// Serves pages of the bridge with their policy, on a port of its own, and keeps what their forms post.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Page } from '../../../plugins/families/pages/index.ts'

const servers: Server[] = []

/** Listens on a free port; `stopServers` ends it. */
export async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  address = '127.0.0.1',
): Promise<string> {
  const server = createServer(handle)
  servers.push(server)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, address, resolve))
  return `http://${address.includes(':') ? `[${address}]` : address}:${(server.address() as AddressInfo).port}`
}

export async function stopServers(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
}

/** A form that was posted. */
export interface Posted {
  readonly path: string
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>
  readonly origin: string | undefined
}

export interface PageServer {
  readonly url: string
  readonly posted: Posted[]
  /** Requests for anything but pages. */
  readonly stray: string[]
  /** Shows a page at a path that is new; its form is answered with `answer`: a page, or where to go. */
  show(page: Page, answer?: Page | string): string
}

function send(response: ServerResponse, { html, policy }: Page): void {
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy }
  response.writeHead(200, { ...headers, 'referrer-policy': 'same-origin' }).end(html)
}

/** As the bridge answers: a form first leads to another address of its own. */
export async function startPageServer(): Promise<PageServer> {
  const shown = new Map<string, { readonly page: Page; readonly answer: Page | string }>()
  const posted: Posted[] = []
  const stray: string[] = []
  const url = await listen(async (request, response) => {
    const path = request.url ?? ''
    const [, name = '', after] = path.split('/')
    const found = shown.get(name)
    if (!found) {
      stray.push(path)
      return response.writeHead(404).end()
    }
    const { page, answer } = found
    if (request.method === 'POST') {
      const fields = [...new URLSearchParams(await text(request))]
      posted.push({ path, fields, origin: request.headers.origin })
      return response.writeHead(303, { location: `/${name}/resume` }).end()
    }
    if (after === undefined) return send(response, page)
    return typeof answer === 'string' ? response.writeHead(303, { location: answer }).end() : send(response, answer)
  })
  return {
    url,
    posted,
    stray,
    show(page, answer = page) {
      const name = `page-${shown.size}`
      shown.set(name, { page, answer })
      return `${url}/${name}`
    },
  }
}
