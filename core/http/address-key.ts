// The one spelling of an address, by which everything counts that counts callers. One machine has a whole IPv6 network.
// Own parser: every request is counted, and `ipaddr.js` takes 4.7 µs for an IPv6 address in the place of 3.1.
import { isIPv4 } from 'node:net'

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
