// Tests the network policy: schemes, private networks and every notation of an address.
import { BlockList, isIPv6 } from 'node:net'
import { expect } from 'chai'
import fc from 'fast-check'
import {
  classifyAddress,
  classifyHost,
  createNetPolicy,
  type NetworkPolicy,
  SPECIAL_RANGES,
} from '../../client/net-policy.ts'
import { caseCount } from '../support/thorough.ts'
import { authErrorOf } from './support/auth-error-of.ts'

const PUBLIC = 'https://mcp.example/mcp'
const LOCAL = 'http://localhost:3000/mcp'

const codeOf = async (url: string, serverUrl = PUBLIC, policy?: NetworkPolicy) =>
  (await authErrorOf(() => createNetPolicy(serverUrl, policy).check(url, 'The token endpoint'))).code

const allows = (url: string, serverUrl = PUBLIC, policy?: NetworkPolicy) =>
  expect(createNetPolicy(serverUrl, policy).check(url, 'The token endpoint').href).to.equal(new URL(url).href)

describe('R-91: https only', () => {
  it('allows https to a public host', () => {
    for (const url of [
      'https://as.example',
      'https://8.8.8.8/x',
      'https://[2606:4700::1111]:8443/x?y',
      'https://[2002:808:808::5efe:8.8.4.4]/',
    ])
      allows(url)
  })

  for (const url of [
    'http://as.example/token',
    'ftp://as.example/',
    'file:///etc/passwd',
    'data:application/json,{}',
    'javascript:alert(1)',
    'blob:https://as.example/1',
    'ws://as.example/',
    'as.example/token',
    '/token',
    '',
    'https://',
    'https://user@as.example/',
    'https://:pass@as.example/',
  ]) {
    it(`rejects ${url || 'an empty text'}`, async () => {
      expect(await codeOf(url)).to.equal('insecure_endpoint')
      expect(await codeOf(url, LOCAL)).to.equal('insecure_endpoint')
    })
  }

  it('hides a password in a rejected URL', async () => {
    const error = await authErrorOf(() =>
      createNetPolicy(PUBLIC, {}).check('https://u:hunter2@as.example/?q=hunter2', 'It'),
    )
    expect(error.message).not.to.include('hunter2')
  })
})

describe('R-92: loopback http and private networks', () => {
  const inside = [
    'https://localhost/',
    'https://LOCALHOST./',
    'https://app.localhost/',
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f.0.0.1/',
    'https://0177.0.0.1/',
    'https://127.255.255.254/',
    'https://[::1]/',
    'https://[0:0:0:0:0:0:0:1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[::127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://10.0.0.1/',
    'https://172.16.0.1/',
    'https://172.31.255.255/',
    'https://192.168.1.1/',
    'https://100.64.0.1/',
    'https://[fd00::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[2001:470::5efe:10.0.0.1]/',
    'https://[2606:4700::200:5efe:192.168.0.1]/',
    'https://[2606:4700::5efe:7f00:1]/',
    'https://[2002:7f00:1::5efe:8.8.8.8]/',
    'https://[2002:a00:1::200:5efe:8.8.8.8]/',
    'https://[2002:808:808::5efe:10.0.0.1]/',
    'https://redis/',
    'https://keycloak.internal/',
    'https://printer.local/',
    'https://nas.home.arpa./',
  ]
  const never = [
    'https://0.0.0.0/',
    'https://0/',
    'https://169.254.169.254/latest/meta-data/',
    'https://[fe80::1]/',
    'https://[::]/',
    'https://[::ffff:169.254.169.254]/',
    'https://[64:ff9b::a9fe:a9fe]/',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'https://[ff02::1]/',
    'https://168.63.129.16/',
    'https://[2001:0:a00:1::1]/',
    'https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/',
    'https://[4000::1]/',
    'https://[4000::5efe:8.8.8.8]/',
    'https://[5f00::200:5efe:8.8.8.8]/',
    'https://[2002:a9fe:a9fe::5efe:8.8.8.8]/',
    'https://[2002:7f00:1::5efe:169.254.169.254]/',
    'https://[2002:a9fe:a9fe::5efe:127.0.0.1]/',
  ]

  for (const url of inside) {
    it(`${url}: allowed only for a private server`, async () => {
      expect(await codeOf(url)).to.equal('blocked_address')
      for (const server of [LOCAL, 'https://192.168.0.7/mcp', 'https://tools.internal/mcp']) allows(url, server)
    })
  }

  for (const url of never) {
    it(`${url}: never allowed`, async () => {
      for (const server of [PUBLIC, LOCAL, 'https://10.0.0.1/'])
        expect(await codeOf(url, server)).to.equal('blocked_address')
    })
  }

  it('allows loopback http from a loopback server', async () => {
    for (const url of ['http://localhost:9000/', 'http://127.0.0.1/', 'http://[::1]:1/']) {
      allows(url, LOCAL)
      expect(await codeOf(url)).to.equal('blocked_address')
    }
    for (const url of ['http://192.168.1.1/', 'http://redis/', 'http://localhost.evil.example/', 'http://0.0.0.0/']) {
      expect(await codeOf(url, LOCAL)).to.equal('insecure_endpoint')
    }
  })

  it('treats similar names as public', () => {
    for (const url of [
      'https://localhost.example/',
      'https://internal.example/',
      'https://mylocalhost.example',
      'https://10.example/',
    ])
      allows(url)
  })

  it('allowHosts allows single hosts by name and port', async () => {
    const policy = { allowHosts: ['Auth.Internal', '10.0.0.7:8443', '::1', '[fd00::2]:443', '169.254.1.1:443'] }
    for (const url of [
      'https://auth.internal/x',
      'https://auth.internal.:8443/x',
      'https://10.0.0.7:8443/',
      'https://[::1]:99/',
      'http://[::1]/',
      'https://[fd00::2]/',
      'https://169.254.1.1/',
    ]) {
      allows(url, PUBLIC, policy)
    }
    for (const url of [
      'https://x.auth.internal/',
      'https://10.0.0.7/',
      'https://10.0.0.8:8443/',
      'https://[fd00::2]:444/',
      'https://169.254.1.1:80/',
    ]) {
      expect(await codeOf(url, PUBLIC, policy)).to.equal('blocked_address')
    }
    expect(await codeOf('http://auth.internal/', PUBLIC, policy)).to.equal('insecure_endpoint')
  })

  for (const entry of ['https://auth.internal', 'auth.internal/x', 'a b', '', 'u@h', 'h:99999', '*.internal?']) {
    it(`allowHosts rejects ${JSON.stringify(entry)}`, async () => {
      const error = await authErrorOf(() => createNetPolicy(PUBLIC, { allowHosts: [entry] }))
      expect(error.code).to.equal('invalid_options')
    })
  }

  it('names the option and the host in the error', async () => {
    const error = await authErrorOf(() =>
      createNetPolicy(PUBLIC, undefined).check('http://localhost:6379/x?y', 'The token endpoint'),
    )
    expect(error.message).to.include('The token endpoint').and.include('allowHosts').and.include('localhost:6379')
  })
})

describe('R-93: blockPrivateNetworks for names and literal addresses', () => {
  const policy = { blockPrivateNetworks: true }

  it('rejects a private server at construction, and private URLs from metadata', async () => {
    for (const server of [LOCAL, 'https://10.1.2.3/', 'https://tools.internal/']) {
      expect((await authErrorOf(() => createNetPolicy(server, policy))).code).to.equal('blocked_address')
    }
    const open = { ...policy, allowHosts: ['10.1.2.3'] }
    allows('https://10.1.2.3/', 'https://10.1.2.3/', open)
    expect(await codeOf('https://10.1.2.4/', 'https://10.1.2.3/', open)).to.equal('blocked_address')
    expect(await codeOf('https://127.0.0.1/', PUBLIC, policy)).to.equal('blocked_address')
  })
})

describe('R-93: address classification', () => {
  const list = new BlockList()
  for (const [network, prefix] of SPECIAL_RANGES) list.addSubnet(network, prefix, isIPv6(network) ? 'ipv6' : 'ipv4')

  it('matches a net.BlockList with the same table (property)', () => {
    const near = fc.constantFrom(
      ...SPECIAL_RANGES.map(([network]) => network).filter(network => !network.includes(':')),
    )
    const shift = fc.integer({ min: -2, max: 2 })
    const beside = fc.tuple(near, shift).map(([network, by]) => {
      const bits = (network.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) + by + 2 ** 32) % 2 ** 32
      return [24, 16, 8, 0].map(at => Math.floor(bits / 2 ** at) % 256).join('.')
    })
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), beside), address => {
        const isBlocked = list.check(address, 'ipv4')
        expect(classifyAddress(address) !== 'public', address).to.equal(isBlocked)
        // However it is written.
        expect(classifyHost(new URL(`http://${address}`).hostname)).to.equal(classifyAddress(address))
        expect(classifyAddress(`::ffff:${address}`), address).to.equal(classifyAddress(address))
      }),
      { numRuns: caseCount(2_000, 100) },
    )
  })

  it('covers IPv6 and embedded IPv4 (property)', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.ipV6(),
          fc.ipV6().map(address => `fe80${address.slice(address.indexOf(':'))}`),
        ),
        address => {
          fc.pre(isIPv6(address))
          const kind = classifyAddress(address)
          expect(kind, address).not.to.equal(undefined)
          if (list.check(address, 'ipv6')) {
            expect(kind, address).not.to.equal('public')
          }
          const { hostname } = new URL(`http://[${address}]`)
          expect(classifyHost(hostname), `${address} ${hostname}`).to.equal(kind)
        },
      ),
      { numRuns: caseCount(2_000, 100) },
    )
  })

  it('returns nothing for invalid addresses', () => {
    for (const text of [
      '',
      'localhost',
      '1.2.3',
      '1.2.3.4.5',
      '256.1.1.1',
      '01.2.3.4x',
      ':',
      ':::',
      '1::2::3',
      'fe80',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      'g::1',
      '::1.2.3.999',
    ]) {
      expect(classifyAddress(text), text).to.equal(undefined)
    }
    expect(classifyAddress('fe80::1%eth0')).to.equal('unroutable')
  })
})
