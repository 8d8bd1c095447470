// Plain requests to a loopback redirect, as a browser or an attacker sends them.
import { type IncomingHttpHeaders, request } from 'node:http'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** One request on a connection of its own; `host` replaces the Host header. */
export function send(url: string, { method = 'GET', host }: { method?: string; host?: string } = {}): Promise<Answer> {
  const { hostname, port, pathname, search } = new URL(url)
  return new Promise((resolve, reject) => {
    const sent = request({
      host: hostname.replace(/^\[|\]$/g, ''),
      port,
      method,
      path: pathname + search,
      agent: false,
      ...(host === undefined ? {} : { headers: { host } }),
    })
    sent.on('error', reject).on('response', async response => {
      let text = ''
      for await (const part of response.setEncoding('utf8')) text += part
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
    })
    sent.end()
  })
}
