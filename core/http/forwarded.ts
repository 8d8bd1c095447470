// Who sent a request and which host it asked for, where proxies stand in front: what they say is believed for as many
// of them as there are, and what a client wrote itself never. Before the guard, in the pipeline (core/kernel/pipeline.ts).
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import proxyAddr from 'proxy-addr'
import { errorText, StartError } from './errors.ts'
import type { ResolvedHttp } from './http-settings.ts'

export interface Forwarded {
  /** The caller's address; empty where its connection is gone. */
  readonly ip: string
  /** Every host that the client asked for; undefined stands for a header that is not there. */
  readonly hosts: ReadonlyArray<string | undefined>
}

type Trust = (address: string, hop: number) => boolean

/** Longer than any address with its port and zone. */
const MAX_ADDRESS = 64

/** Throws a StartError for an entry that is no address. */
function compileTrust(trusted: number | readonly string[]): Trust {
  if (typeof trusted === 'number') return (_, hop) => hop < trusted
  try {
    return proxyAddr.compile([...trusted])
  } catch (cause) {
    const fits = 'an address, a range such as 10.0.0.0/8, or one of loopback, linklocal and uniquelocal'
    throw new StartError(`${errorText(cause)}; each entry is ${fits}`, { cause, at: ['http', 'trustProxy'] })
  }
}

/** An address as `X-Forwarded-For` has it; some proxies write its port too. */
function addressIn(entry: string): string | undefined {
  if (entry.length > MAX_ADDRESS) return undefined
  if (isIP(entry) !== 0) return entry
  const [, bracketed, dotted] = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::\d+)?$/i.exec(entry) ?? []
  const bare = bracketed ?? dotted
  return bare !== undefined && isIP(bare) !== 0 ? bare : undefined
}

/** The value that the outermost of so many proxies wrote: each adds its own at the end, or all are replaced by one. */
function outermost(header: string | string[] | undefined, proxies: number): string | undefined {
  const values = [header ?? []]
    .flat()
    .join(',')
    .split(',')
    .map(value => value.trim())
    .filter(value => value !== '')
  return values.at(-proxies) ?? values[0]
}

/** HTTP/2, which a server in front of `Host.callback` may speak, names it in `:authority`; Host may come beside it, or not. */
function hostsIn({ ':authority': authority, host }: IncomingHttpHeaders): Forwarded['hosts'] {
  if (authority === undefined) return [host]
  return host === undefined ? [String(authority)] : [String(authority), host]
}

/**
 * Reads `X-Forwarded-For` and `X-Forwarded-Host` as `http.trustProxy` says. Throws a StartError for a list with an
 * entry that is no address.
 */
export function createForwarded({ trustProxy }: Pick<ResolvedHttp, 'trustProxy'>): (req: IncomingMessage) => Forwarded {
  if (trustProxy === false)
    return ({ socket, headers }) => ({ ip: socket.remoteAddress ?? '', hosts: hostsIn(headers) })
  const trust = compileTrust(trustProxy)

  return req => {
    const near = req.socket.remoteAddress
    if (near === undefined || !trust(near, 0)) return { ip: near ?? '', hosts: hostsIn(req.headers) }
    // From the nearest to the first that is not trusted: the client.
    const addresses = proxyAddr.all(req, trust)
    const proxies = Math.max(1, addresses.length - 1)
    // Where a proxy wrote no address, the caller is as far as it can be told.
    const ip = addresses.reduceRight<string | undefined>((found, entry) => found ?? addressIn(entry), undefined)
    const asked = outermost(req.headers['x-forwarded-host'], proxies)
    return { ip: ip ?? near, hosts: asked === undefined ? hostsIn(req.headers) : [asked] }
  }
}
