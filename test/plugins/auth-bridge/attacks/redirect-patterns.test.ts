// Tests that redirect URI patterns match only what a browser (WHATWG URL) resolves to the same location.
import { expect } from 'chai'
import fc from 'fast-check'
import { mayRedirect, parseRedirectPattern, sameRedirect } from '../../../../plugins/auth-bridge/clients/redirects.ts'
import { anyText, anyUrl } from '../../../support/any-text.ts'
import { caseCount } from '../../../support/thorough.ts'
import { Tally } from './tally.ts'

const PATTERNS = [
  'https://claude.ai/api/mcp/auth_callback',
  'https://claude.ai/api/*/auth_callback',
  'https://claude.ai/**',
  'https://claude.ai:*/cb',
  'https://claude.ai:8443/cb/*',
  'http://127.0.0.1:*/**',
  'http://[::1]:*/**',
  'http://localhost:*/**',
  'http://localhost/cb',
  'cursor://*',
  'cursor://anysphere.cursor-retrieval/oauth/*',
  'com.example.app:/oauth/cb',
]

const PIECES = [
  ...['https', 'http', 'HTTPS', 'cursor', 'javascript', 'data', 'com.example.app', ':', '/', '//', '///', '\\', '\\\\'],
  ...['claude.ai', 'CLAUDE.AI', 'evil.example', 'claude.ai.evil.example', 'evil-claude.ai', 'claude.ai.', 'clаude.ai'],
  ...['127.0.0.1', '127.1', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', 'localhost', 'localhost.', '0'],
  ...['@', 'user:pass@', '%40', '%2f', '%5c', '%00', '%09', '%0a', '\t', '\n', '\r', ' ', '\u0000', '\u200b', '\u00ad'],
  ...['。', '．', '／', '＠', '：', '..', '.', '%2e%2e', '%2E.', '#', '%23', '?', ';', '&', '*', '**', '|', '^', '<'],
  ...[
    ':443',
    ':80',
    ':8443',
    ':0',
    ':65536',
    ':',
    'api',
    'mcp',
    'auth_callback',
    'cb',
    'oauth',
    'x',
    'anysphere.cursor-retrieval',
  ],
]

/** Pieces in any order; those of a pattern with some put in; any text. */
const uris = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 10 }).map(parts => parts.join('')),
  fc
    .tuple(fc.constantFrom(...PATTERNS), fc.array(fc.tuple(fc.nat(60), fc.constantFrom(...PIECES)), { maxLength: 3 }))
    .map(([pattern, inserts]) =>
      inserts.reduce(
        (text, [at, piece]) => text.slice(0, at) + piece + text.slice(at),
        pattern.replace(/:\*/, ':5000'),
      ),
    ),
  anyUrl,
  anyText(40).map(text => `https://claude.ai${text}`),
)

/** Host and scheme of a pattern, read without the code that is attacked. */
const readPattern = (pattern: string) => {
  const [, scheme = '', host = '', port = ''] = /^([^:]+:)(?:\/\/(\[[^\]]+\]|[^/:]*)(?::([^/]+))?)?/.exec(pattern) ?? []
  return { scheme, host, port }
}

/** Why a URL that passed should not have; undefined: it is right. */
function faultOf(pattern: string, uri: string): string | undefined {
  const { scheme, host, port } = readPattern(pattern)
  const url = new URL(uri)
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:'
  if (url.protocol !== scheme) return `is of ${url.protocol}`
  if (host !== '*' && url.hostname !== host) return `is at ${url.hostname}`
  if (isWeb && port !== '*' && url.port !== port) return `is at port ${url.port}`
  if (url.protocol === 'http:' && !/^(?:127\.0\.0\.1|\[::1\]|localhost)$/.test(url.hostname)) return 'is plain http'
  if (url.search !== '') return 'has a query'
  if (url.username !== '' || url.password !== '' || uri.includes('#')) return 'has a user or a fragment'
  // What a server of another make, which decodes first, would read.
  if (/(?:^|[/\\])\.\.(?:[/\\]|$)/.test(decodeURIComponent(url.pathname.replace(/%(?![\da-f]{2})/gi, '%25'))))
    return 'climbs'
  return undefined
}

const SPELLINGS = caseCount(20_000, 2_000)
const PAIRS = caseCount(10_000, 300)

describe('auth-bridge attacks: redirect URI patterns', () => {
  it('matches no redirect URI that a browser resolves to another host', () => {
    const tally = new Tally('redirect URI spellings')
    let passed = 0
    fc.assert(
      fc.property(fc.constantFrom(...PATTERNS), uris, (pattern, uri) => {
        const may = mayRedirect([parseRedirectPattern(pattern)], uri)
        if (may) passed += 1
        let fault: string | undefined
        try {
          fault = may ? faultOf(pattern, uri) : undefined
        } catch (error) {
          fault = String(error)
        }
        tally.add(`${pattern} let ${JSON.stringify(uri)} pass`, fault === undefined, fault)
      }),
      { numRuns: SPELLINGS, seed: 15 },
    )
    expect(passed).to.be.greaterThan(SPELLINGS / 600)
    tally.end(SPELLINGS)
  })

  it('matches no redirect URI whose decoded path differs or whose query contains response parameters', () => {
    const tally = new Tally('escapes, dots with a ; and parameters of the answer')
    const controls = Array.from({ length: 0x20 }, (_, code) => `%${code.toString(16).padStart(2, '0')}`)
    const escapes = ['%2f', '%5c', '%7f', ...controls].flatMap(text => [text, text.toUpperCase()])
    const dots = ['.', '..', '%2e', '%2E%2e', '.%2e'].flatMap(text => [
      `${text};`,
      `${text};x=1`,
      `${text}%3b`,
      `${text}%3B`,
    ])
    const answers = ['code', 'state', 'iss', 'error', 'response', '%63ode'].flatMap(name => [
      `?${name}=x`,
      `?a=b&${name}`,
    ])
    const places = [
      'https://claude.ai/',
      'https://claude.ai/a/',
      'http://127.0.0.1:5000/',
      'cursor://anysphere/',
      'com.example.app:/oauth/',
    ]
    const texts = [...PATTERNS, 'com.example.app:/oauth/**']
    const patterns = texts.map(parseRedirectPattern)
    const anyQuery = texts.map(text => parseRedirectPattern(`${text}?*`))
    for (const place of places) {
      for (const text of escapes)
        for (const uri of [`${place}${text}`, `${place}a${text}b`, `${place}..${text}cb`])
          tally.add(JSON.stringify(uri), !mayRedirect(patterns, uri))
      for (const step of dots)
        for (const uri of [`${place}${step}/cb`, `${place}${step}`]) tally.add(uri, !mayRedirect(patterns, uri))
      for (const query of answers) tally.add(`${place}cb${query}`, !mayRedirect(anyQuery, `${place}cb${query}`))
      // What only looks like these.
      for (const rest of ['cb', 'a;b', 'a..;b', 'a%20b', '%c3%a9'])
        tally.add(`${place}${rest} is refused`, mayRedirect(patterns, `${place}${rest}`))
      for (const rest of ['cb?a=%2f', 'cb?codes=x&my_state=1'])
        tally.add(`${place}${rest} is refused`, mayRedirect(anyQuery, `${place}${rest}`))
    }
    tally.end(places.length * (escapes.length * 3 + dots.length * 2 + answers.length + 7))
  })

  it('matches a query only if the pattern has the same query or ?*', () => {
    const tally = new Tally('redirect URIs with a query')
    const may = (pattern: string, uri: string) => mayRedirect([parseRedirectPattern(pattern)], uri)
    const home = 'https://claude.ai/api/mcp/auth_callback'
    for (const query of ['?next=https://evil.example', '?next=//evil.example', '?x', '?returnTo=%2F%2Fevil.example']) {
      tally.add(query, !may(home, `${home}${query}`))
      tally.add(`${query} of a path`, !may('https://claude.ai/**', `${home}${query}`))
      tally.add(`${query} of a machine`, !may('http://127.0.0.1:*/**', `http://127.0.0.1:5000/cb${query}`))
      tally.add(`${query} of an app`, !may('cursor://*', `cursor://anysphere/cb${query}`))
      tally.add(`${query} for another query`, !may(`${home}?tenant=acme`, `${home}${query}`))
      tally.add(`${query} after the query`, !may(`${home}?tenant=acme`, `${home}?tenant=acme&${query.slice(1)}`))
      tally.add(`${query} where any is allowed`, may(`${home}?*`, `${home}${query}`))
    }
    tally.add('the same query', may(`${home}?tenant=acme`, `${home}?tenant=acme`))
    tally.add('no query', !may(`${home}?tenant=acme`, home))
    tally.end(30)
  })

  it('matches no browser-handled scheme with a custom scheme pattern', () => {
    const tally = new Tally('an app’s pattern for the web')
    const schemes = [
      'https',
      'http',
      'javascript',
      'data',
      'file',
      'blob',
      'ws',
      'wss',
      'ftp',
      'about',
      'view-source',
      'cursors',
      'cursor+x',
    ]
    const rests = ['//evil.example/', '//evil.example', ':alert(1)', '///etc/passwd', '//cursor/', '//*', '']
    for (const pattern of ['cursor://*', 'cursor://anysphere.cursor-retrieval/**', 'com.example.app:/oauth/cb'])
      for (const scheme of schemes)
        for (const rest of rests) {
          const uri = `${scheme}:${rest}`
          tally.add(`${pattern} let ${uri} pass`, !mayRedirect([parseRedirectPattern(pattern)], uri))
        }
    for (const uri of ['com.example.app://evil.example/oauth/cb', 'com.example.app://@/oauth/cb'])
      tally.add(uri, !mayRedirect([parseRedirectPattern('com.example.app:/oauth/cb')], uri))
    tally.end(275)
  })

  it('rejects patterns that match more than they appear to', () => {
    const tally = new Tally('patterns')
    const bad = [
      ...[
        '*',
        '**',
        'https:*',
        'https://*',
        'https://*/cb',
        'https://*.example/cb',
        'https://claude.*/cb',
        'https:///cb',
      ],
      ...[
        'https:claude.ai/cb',
        'https:/claude.ai/cb',
        'https://user@claude.ai/cb',
        'https://claude.ai@evil.example/cb',
      ],
      ...[
        'http://claude.ai/cb',
        'http://*/cb',
        'http://127.0.0.1.evil.example/**',
        'http://10.0.0.1/cb',
        'http://0.0.0.0/cb',
      ],
      ...['http://localhost.evil.example/**', 'http://[::2]/cb', 'https://claude.ai/**/cb', 'https://claude.ai/c*b'],
      ...[
        'javascript:*',
        'data:*',
        'data://*',
        'javascript://*',
        'file://*',
        'blob://*',
        'vbscript:*',
        'about://*',
        'ws://*',
      ],
      ...['view-source://*', 'intent://*', 'filesystem://*', 'chrome://*', 'resource://*', 'jar://*'],
      ...[
        'https://claude.ai:80*/cb',
        'https://claude.ai:x/cb',
        'https://claude.ai/cb#x',
        'https://claude.ai/cb?x=*',
        '',
      ],
      ...['https://claude.ai\\@evil.example/cb', ' https://claude.ai/cb'],
    ]
    for (const pattern of bad) {
      let isRefused = false
      try {
        parseRedirectPattern(pattern)
      } catch {
        isRefused = true
      }
      tally.add(JSON.stringify(pattern), isRefused)
    }
    tally.end(bad.length)
  })

  it('treats two redirect URIs as equal only if the loopback port is the only difference', () => {
    const tally = new Tally('a changed redirect URI, taken for the one that was allowed')
    fc.assert(
      fc.property(uris, uris, (one, other) => {
        const isSame = sameRedirect(one, other)
        const differs = () => {
          const [a, b] = [new URL(one), new URL(other)]
          return a.protocol !== 'http:' || a.hostname !== b.hostname || a.pathname + a.search !== b.pathname + b.search
        }
        tally.add(`${one} and ${other}`, one === other || !isSame || !differs())
      }),
      { numRuns: PAIRS, seed: 15 },
    )
    const home = 'http://127.0.0.1:5000/cb'
    for (const other of [
      'http://localhost:5000/cb',
      'http://127.0.0.1:5000/cb?x',
      'http://127.0.0.1:5000/cb/',
      'http://127.0.0.2:5000/cb',
    ])
      tally.add(other, !sameRedirect(home, other))
    for (const other of ['http://a@127.0.0.1:5000/cb', 'https://127.0.0.1:5000/cb', 'http://127.0.0.1:5000/cb#x'])
      tally.add(other, !sameRedirect(home, other))
    tally.end(PAIRS + 7)
  })
})
