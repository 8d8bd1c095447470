// Whether the metadata document of a client is somewhere on the public internet, known before anything is connected to: who
// names a client must not learn which ports of our network are open. oidc-provider looks again at what it is connected to,
// which is what stops a name that turns.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'

/** Of this machine, of private networks, and of special use (RFC 6890 and the registries of IANA). */
const V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...[
    '192.0.2.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/3',
  ],
]
/** All that is no global unicast, and what of that leads to IPv4 or is of special use. */
const V6 = ['::/3', '4000::/2', '8000::/1', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

function listOf(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    list.addSubnet(network, Number(prefix), family)
  }
  return list
}

/** Two lists: in one, ::/3 would hold all of IPv4. */
const [special4, special6] = [listOf('ipv4', V4), listOf('ipv6', V6)]

const isSpecial = (address: string): boolean =>
  isIP(address) === 6 ? special6.check(address, 'ipv6') : special4.check(address, 'ipv4')

/** Names that mean this machine, whatever a resolver says (RFC 6761). */
const HERE = /(?:^|\.)localhost\.?$/i

/** True where every address that this URL's host has is public; false where it has none. */
export async function isPublic(url: string): Promise<boolean> {
  if (!URL.canParse(url)) return false
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  if (HERE.test(host)) return false
  if (isIP(host) !== 0) return !isSpecial(host)
  try {
    const found = await lookup(host, { all: true })
    return found.length > 0 && found.every(({ address }) => !isSpecial(address))
  } catch {
    return false
  }
}
