// Tests the signing and sealing keys of auth-bridge: derivation, rotation and key files.

import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createMemoryStore, type Store } from '../../../core/store.ts'
import { createRegisteredClients } from '../../../plugins/auth-bridge/clients/client-rules.ts'
import {
  deriveSigningKeys,
  readSigningKeys,
  type SigningKey,
} from '../../../plugins/auth-bridge/server/signing-keys.ts'
import { createRecords, createSealer, grantedKey, pendingKey } from '../../../plugins/families/credentials/records.ts'
import { createMemoryGrantStore } from '../../../plugins/families/grant-store/index.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { startBridge, stopBridges } from '../../support/bridge.ts'
import { readClaims } from '../../support/form-browser.ts'
import { freePort } from '../../support/free-port.ts'
import { startIdentityProvider } from '../../support/identity-provider.ts'
import { callAs } from '../../support/protected-host.ts'

const fits = ({ privateJwk, publicJwk }: SigningKey): boolean => {
  const text = Buffer.from('a text')
  const own = createPrivateKey({ key: privateJwk, format: 'jwk' })
  return verify('sha256', text, createPublicKey({ key: publicJwk, format: 'jwk' }), sign('sha256', text, own))
}

describe('auth-bridge: signing keys', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-host-keys-'))
  after(() => rmSync(folder, { recursive: true }))

  it('are derived deterministically from each secret, and differ between secrets', () => {
    const secrets = Array.from({ length: 200 }, () => randomBytes(32))
    const keys = deriveSigningKeys(secrets)
    expect(deriveSigningKeys(secrets)).to.deep.equal(keys)
    expect(new Set(keys.map(({ publicJwk }) => publicJwk['kid'])).size).to.equal(200)
    expect(keys.every(fits)).to.equal(true)
    for (const { publicJwk } of keys) expect(Object.keys(publicJwk)).not.to.include('d')
  })

  it('are read from a PEM file in file order', () => {
    const pems = ['sec1', 'pkcs8'].map(type =>
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: type as 'sec1', format: 'pem' }),
    )
    const file = join(folder, 'two.pem')
    writeFileSync(file, pems.join('\n'))
    const keys = readSigningKeys(file)
    expect(keys.map(fits)).to.deep.equal([true, true])
  })

  for (const [what, text, problem] of [
    ['nothing', '', 'has no PEM private key; make one with: openssl genpkey'],
    ['a certificate', '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----', 'is not a valid private key'],
    [
      'another curve',
      generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
      'is not of the curve P-256',
    ],
  ] as const) {
    it(`reports an error for a key file that contains ${what}`, () => {
      const file = join(folder, 'bad.pem')
      writeFileSync(file, text)
      expect(() => readSigningKeys(file)).to.throw(problem)
    })
  }
})

describe('auth-bridge: sealed records', () => {
  const [one, two] = [randomBytes(32), randomBytes(32)]

  it('open only with the sealing key and at their own location', async () => {
    const store = createMemoryGrantStore()
    const records = createRecords(store, createSealer([one]))
    const place = grantedKey('login', 'an id')
    await records.write(place, { secret: 'tell nobody' }, 60_000)
    const kept = (await store.get(place)) ?? ''
    expect(kept).not.to.include('tell')
    expect(place).not.to.include('an id')
    expect(await records.read(place)).to.deep.equal({ secret: 'tell nobody' })
    expect(await createRecords(store, createSealer([two, one])).read(place)).to.deep.equal({ secret: 'tell nobody' })
    expect(await createRecords(store, createSealer([two])).read(place)).to.equal(undefined)
    await store.set(pendingKey('login', 'an id'), kept, 60_000)
    expect(await records.read(pendingKey('login', 'an id'))).to.equal(undefined)
  })

  it('are rejected after a single bit change', () => {
    const sealer = createSealer([one])
    const sealed = sealer.seal('here', { a: 1 })
    let opened = 0
    for (let at = 0; at < sealed.length; at++) {
      const other = String.fromCharCode(sealed.charCodeAt(at) ^ 1)
      const changed = sealed.slice(0, at) + other + sealed.slice(at + 1)
      // base64url: the last character has bits that say nothing.
      if (Buffer.from(changed.slice(1), 'base64url').equals(Buffer.from(sealed.slice(1), 'base64url')) && at > 0)
        continue
      if (sealer.open('here', changed) !== undefined) opened++
    }
    expect(opened).to.equal(0)
  })

  it('are updated by one of several concurrent writers', async () => {
    const records = createRecords(createMemoryGrantStore(), createSealer([one]))
    const place = grantedKey('count', 'x')
    await records.write(place, { count: 0 }, 60_000)
    const add = () => records.update<{ count: number }>(place, 60_000, ({ count }) => ({ count: count + 1 }))
    await Promise.all(Array.from({ length: 15 }, add))
    expect(await records.read(place)).to.deep.equal({ count: 15 })
  })
})

describe('auth-bridge: registered clients', () => {
  const said = {
    redirect_uris: ['http://127.0.0.1/cb'],
    client_name: 'A',
    token_endpoint_auth_method: 'client_secret_basic',
  }

  it('are recognised by id after secret rotation, and each has its own secret', () => {
    const [one, two] = [randomBytes(32), randomBytes(32)]
    const before = createRegisteredClients([one])
    const after = createRegisteredClients([two, one])
    const [id, other] = [before.idOf(said), before.idOf(said)]
    expect(id).not.to.equal(other)
    expect(before.secretOf(id)).not.to.equal(before.secretOf(other))
    expect(after.find(id)).to.deep.equal(before.find(id))
    expect(after.find(id)).to.include({ client_name: 'A', client_secret: before.secretOf(id) })
    expect(createRegisteredClients([two]).find(id)).to.equal(undefined)
  })
})

describe('auth-bridge: secret rotation', () => {
  after(stopBridges)

  it('keeps tokens and clients valid while both secrets are configured', async () => {
    const [old, fresh] = ['the old secret of a test, which is long', 'the new secret of a test, which is long']
    const idp = await startIdentityProvider()
    const port = await freePort()
    const first = await startBridge({ idp, config: { secrets: [old], http: { port } } })
    const client = await first.client()
    const { access_token } = await client.logIn({ scope: 'read' })
    await first.host.close({ grace: 0 })
    const second = await startBridge({ idp, config: { secrets: [fresh, old], http: { port } } })
    // Connections to the first host are kept, and found closed.
    await fetch(second.issuer).catch(() => undefined)
    expect((await callAs(second.resource, access_token)).status).to.equal(200)
    const next = await client.logIn({ scope: 'read' })
    expect(next.error_description).to.equal(undefined)
    expect(readClaims(next.access_token)['client_id']).to.equal(client.clientId)
  })
})

describe('auth-bridge: store', () => {
  after(stopBridges)

  it('keeps grants in the store of a plugin without other nodes', async () => {
    const store: Store = { ...createMemoryStore(), shared: false }
    const granted = new Set<string>()
    const own = plugin(host =>
      host.provide('store', {
        ...store,
        transact(partition, ...more) {
          if (partition.startsWith('grants:granted:')) granted.add(partition)
          return store.transact(partition, ...more)
        },
      }),
    )
    const bridge = await startBridge({ plugins: { own } })
    await (await bridge.client()).logIn({ scope: 'read' })
    expect(granted.size).to.be.above(0)
  })
})
