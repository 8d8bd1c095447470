// Who sent a request and which host it asked for, where proxies stand in front: what they say is believed for as many
// of them as there are, and what a client wrote itself never. Before the guard, in the pipeline (core/kernel/pipeline.ts).

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP, isIPv4 } from 'node:net'
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

const IPV4_MAPPED = '::ffff:'
const GROUPS = 8
const GROUP_BITS = 16

/** The groups of one side of `::`; an IPv4 address at the end is two. */
const groupsOf = (side: string): number[] =>
  side === ''
    ? []
    : side.split(':').flatMap(group => {
        if (!group.includes('.')) return Number.parseInt(group, 16)
        const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
        return [a * 256 + b, c * 256 + d]
      })

/** All eight groups of an IPv6 address, whatever its spelling. */
function expand(address: string): number[] {
  const [head = '', tail] = address.split('::')
  const first = groupsOf(head)
  if (tail === undefined) return first
  const last = groupsOf(tail)
  return [...first, ...new Array<number>(Math.max(0, GROUPS - first.length - last.length)).fill(0), ...last]
}

/** The first bits of a group, where so many of the whole address count. */
function masked(group: number, index: number, prefix: number): number {
  const kept = Math.min(GROUP_BITS, Math.max(0, prefix - index * GROUP_BITS))
  return group & (0xffff << (GROUP_BITS - kept))
}

/**
 * One text for one caller: an IPv4 address, also where it is written as IPv6, or the network of an IPv6 address. `prefix`:
 * the bits of it that count.
 */
export function addressKey(ip: string, prefix: number): string {
  if (!ip.includes(':')) return ip
  if (ip.startsWith(IPV4_MAPPED) && isIPv4(ip.slice(IPV4_MAPPED.length))) return ip.slice(IPV4_MAPPED.length)
  const [address = ''] = ip.split('%')
  const groups = expand(address)
  const [, , , , , marker, high = 0, low = 0] = groups
  const isMapped = marker === 0xffff && groups.slice(0, 5).every(group => group === 0)
  if (isMapped) return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  return `${groups.map((group, index) => masked(group, index, prefix).toString(16)).join(':')}/${prefix}`
}
