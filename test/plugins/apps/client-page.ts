// Servers of a client that runs in a browser: its page, and its sandbox, which is of another origin and sends the policy that
// the specification makes of an app's `csp` (SEP-1865, "Sandbox proxy").
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'

interface Csp {
  connectDomains?: string[]
  resourceDomains?: string[]
  frameDomains?: string[]
  baseUriDomains?: string[]
}

const servers: Server[] = []

export async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export function closeServers(): void {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
}

/** What a client must enforce. */
export function policyOf({ connectDomains, resourceDomains, frameDomains, baseUriDomains }: Csp): string {
  const also = (domains: string[] = []) => domains.map(domain => ` ${domain}`).join('')
  const only = (domains: string[] | undefined, otherwise: string) => (domains?.length ? domains.join(' ') : otherwise)
  return [
    "default-src 'none'",
    `script-src 'self' 'unsafe-inline'${also(resourceDomains)}`,
    `style-src 'self' 'unsafe-inline'${also(resourceDomains)}`,
    `img-src 'self' data:${also(resourceDomains)}`,
    `font-src 'self'${also(resourceDomains)}`,
    `media-src 'self' data:${also(resourceDomains)}`,
    `connect-src ${only(connectDomains, "'none'")}`,
    // The frame that the sandbox makes is of its own origin.
    `frame-src ${only(frameDomains, "'none'")}`,
    `base-uri ${only(baseUriDomains, "'self'")}`,
    "object-src 'none'",
  ].join('; ')
}

async function scriptOf(name: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'pages', `${name}.ts`)],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}

/** Serves `<name>.ts` as a page. */
async function servePage(name: string, policy: (csp: Csp) => string | undefined): Promise<string> {
  const script = (await scriptOf(name)).replaceAll('</script', '<\\/script')
  return serve((request, response) => {
    const csp = new URL(request.url ?? '/', 'http://localhost').searchParams.get('csp') ?? '{}'
    const header = policy(JSON.parse(csp) as Csp)
    if (header !== undefined) response.setHeader('Content-Security-Policy', header)
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><title>${name}</title><body><script type="module">${script}</script>`)
  })
}

export const serveClient = (): Promise<string> => servePage('client', () => undefined)
export const serveSandbox = (): Promise<string> => servePage('sandbox', policyOf)
