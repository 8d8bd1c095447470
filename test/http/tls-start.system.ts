// Tests validation of `http.tls` at startup and in `check`.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import type { Config } from '../../core/index.ts'
import { testHost } from '../../core/testing.ts'
import { type Authority, certify, type Pair, removeTlsFolders, tlsFolder } from '../support/certificates.ts'
import { createTestLog, stopHosts } from '../support/start-host.ts'
import { CONFIG, FILES, writePair } from './tls-host.ts'

type Tls = NonNullable<NonNullable<Config['http']>['tls']>

let authority: Authority
let pair: Pair

before(function () {
  ;({ authority, pair } = certify(this))
})
after(removeTlsFolders)
after(stopHosts)

interface More {
  readonly plugins?: Config['plugins']
  readonly purpose?: 'inspect' | 'serve' | 'stdio'
}

/** What a check of it says, or that it is fine; and what it warns of. */
async function check(
  tls: Tls | undefined,
  directory: string,
  { plugins, purpose = 'inspect' as const, ...http }: Config['http'] & More = {},
) {
  const log = createTestLog()
  const config = {
    server: { name: 'checked', version: '1.0.0' },
    secrets: ['a secret of this test, which is long enough'],
    ...CONFIG,
    plugins: { ...CONFIG.plugins, ...plugins },
  }
  const made = createHost({ ...config, http: { ...http, ...(tls && { tls }) } }, { directory, log, purpose })
  const said = await made.then(
    async host => {
      await host.close()
      return 'fine'
    },
    (error: Error) => error.message,
  )
  const warnings = log.lines.filter(({ level, path }) => level === 'warn' && path !== undefined)
  return { said, warnings: warnings.map(({ message }) => message) }
}

/** A folder with a right pair, and these files. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = writePair(pair)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

describe('http.tls validation', () => {
  it('accepts a matching certificate and key', async () => {
    expect(await check(FILES, folderWith({}))).to.deep.equal({ said: 'fine', warnings: [] })
  })

  it('rejects unusable files and values with the key and a fix', async () => {
    const other = authority.sign()
    const between = authority.authority('an intermediate')
    const leaf = between.sign()
    const folder = folderWith({
      'other.pem': other.key,
      'text.pem': 'no PEM at all',
      'empty.pem': '',
      'cut.pem': `${pair.cert.slice(0, 300)}\n-----END CERTIFICATE-----\n`,
      'cut-key.pem': pair.key.replace(/\n[^-]+\n-/, '\nMIGH\n-'),
      'turned.pem': between.cert + leaf.cert,
      'leaf-key.pem': leaf.key,
    })
    execFileSync('openssl', [
      'x509',
      '-in',
      join(folder, 'cert.pem'),
      '-outform',
      'DER',
      '-out',
      join(folder, 'cert.der'),
    ])
    const locked = [
      '-topk8',
      '-in',
      join(folder, 'key.pem'),
      '-out',
      join(folder, 'locked.pem'),
      '-passout',
      'pass:right',
    ]
    execFileSync('openssl', ['pkcs8', ...locked], { stdio: 'pipe' })
    const weak = ['-newkey', 'rsa:512', '-nodes', '-subj', '/CN=weak', '-keyout', join(folder, 'weak.key')]
    execFileSync('openssl', ['req', '-x509', ...weak, '-out', join(folder, 'weak.pem')], { stdio: 'pipe' })
    const mistakes: ReadonlyArray<readonly [Partial<Tls>, RegExp]> = [
      [{ cert: './gone.pem' }, /^http\.tls\.cert: .*ENOENT/],
      [{ key: './gone.key' }, /^http\.tls\.key: it is neither PEM nor a readable file/],
      [{ cert: '.' }, /^http\.tls\.cert: its file contains no PEM/],
      [{ cert: '/dev/zero' }, /^http\.tls\.cert: its file contains no PEM/],
      [{ cert: './cert.der' }, /^http\.tls\.cert: its file contains no PEM.*openssl/],
      [{ cert: './text.pem' }, /contains no PEM/],
      [{ cert: './empty.pem' }, /contains no PEM/],
      [{ cert: './cut.pem' }, /^http\.tls\.cert: the certificate cannot be read/],
      [{ cert: './key.pem' }, /^http\.tls\.cert: the certificate cannot be read/],
      [{ key: './cert.pem' }, /^http\.tls\.key: the key cannot be read/],
      [{ key: './cut-key.pem' }, /^http\.tls\.key: the key cannot be read/],
      [{ key: './other.pem' }, /^http\.tls\.key: .*http\.tls\.cert cannot be used: .*mismatch/],
      [{ key: './locked.pem' }, /^http\.tls\.key.*http\.tls\.passphrase/],
      [{ key: './locked.pem', passphrase: 'wrong' }, /^http\.tls\.key.*http\.tls\.passphrase/],
      [{ cert: './turned.pem', key: './leaf-key.pem' }, /mismatch/],
      [{ cert: './weak.pem', key: './weak.key' }, /^http\.tls\.key: .*cannot be used: .*too small/],
    ]
    for (const [tls, expected] of mistakes) expect((await check({ ...FILES, ...tls }, folder)).said).to.match(expected)
  })

  it('reports all TLS errors together with other config errors', async () => {
    const { said } = await check({ cert: './a.pem', key: './b.pem' }, tlsFolder())
    for (const key of ['cert', 'key']) expect(said).to.include(`http.tls.${key}: `)
  })

  it('prints no part of an inline private key, in any encoding', async () => {
    const secret = pair.key.split('\n')[1] as string
    const keys = [secret, secret.replaceAll('/', '_'), `${secret}\n${secret}`]
    for (const key of keys) {
      const { said } = await check({ ...FILES, key }, folderWith({}))
      expect(said).to.match(/http\.tls\.key/)
      expect(said).to.not.include(secret.slice(0, 10))
    }
  })

  it('warns about an http publicUrl', async () => {
    const { said, warnings } = await check(FILES, folderWith({}), { publicUrl: 'http://other.example' })
    expect(said).to.equal('fine')
    expect(warnings.join()).to.match(/^http\.publicUrl: .*only HTTPS/)
  })

  it('warns about a certificate that has expired or is not valid yet, with its file and date', async () => {
    for (const [days, expected] of [
      [[-9, -2], /^http\.tls\.cert: \.\/cert\.pem expired on \d{4}-\d\d-\d\dT.*Z, so clients refuse it; renew it/],
      [[2, 9], /^http\.tls\.cert: \.\/cert\.pem is valid from \d{4}-\d\d-\d\dT.*Z, so clients refuse it; .*clock/],
    ] as const) {
      const folder = writePair(authority.sign({ days }))
      for (const purpose of ['inspect', 'serve'] as const) {
        const { said, warnings } = await check(FILES, folder, { purpose })
        expect(said).to.equal('fine')
        expect(warnings).to.have.lengthOf(1)
        expect(warnings[0]).to.match(expected)
      }
    }
  })

  it('warns about a plain HTTP metrics port reachable from other machines', async () => {
    const folder = folderWith({})
    const metricsAt = (more: object) => ({ plugins: { metrics: { port: 0, token: 'a-token-long-enough', ...more } } })
    const open = metricsAt({ host: '0.0.0.0' })
    const warningsOf = async (...[tls, http]: [Tls | undefined, Parameters<typeof check>[2]]) => {
      const { said, warnings } = await check(tls, folder, http)
      expect(said).to.equal('fine')
      return warnings
    }
    const plain = await warningsOf(FILES, open)
    expect(plain).to.have.lengthOf(1)
    expect(plain[0]).to.match(/^plugins\.metrics\.host: http\.tls.*unencrypted.*`host` to 127\.0\.0\.1, or.* `path`/)
    expect(await warningsOf(FILES, { ...open, purpose: 'serve' })).to.have.lengthOf(1)
    const fine = [
      await warningsOf(undefined, open),
      await warningsOf(FILES, metricsAt({})),
      await warningsOf(FILES, { ...open, purpose: 'stdio' }),
      await warningsOf(FILES, { plugins: { metrics: { path: '/metrics', token: 'a-token-long-enough' } } }),
    ]
    expect(fine.flat()).to.deep.equal([])
  })

  it('is skipped for a test host, which uses plain HTTP', async () => {
    const config = { server: { name: 'tested', version: '1.0.0' }, ...CONFIG, http: { tls: FILES } }
    await using host = await testHost(config, { directory: tlsFolder() })
    expect(host.url).to.match(/^http:/)
    expect((await fetch(`${host.url}/health`)).status).to.equal(200)
  })
})
